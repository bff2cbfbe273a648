// The tables of one simulated schedule: its devices and its stages.
#pragma once

#include <string>

#include "sim/model.hpp"
#include "tools/study/outcome.hpp"

namespace stageline::report {

struct TableView {
  int width = 0;  // the most columns of a line; 0: any
  bool full =
      true;  // every row; else, of more than 24, those of row_groups() and a line that says so
  bool activations = false;  // of devices: the activations that they hold at their peak of memory
};

/// A row per device: busy time, idle time by cause, peak memory.
std::string device_table(const Outcome& outcome, const TableView& view = {});

/// A row per stage: its devices, layers, costs, stashes and weight versions.
std::string stage_table(const Outcome& outcome, const Model& model, const TableView& view = {});

}  // namespace stageline::report
