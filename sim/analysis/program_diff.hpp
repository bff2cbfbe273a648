// Where two programs differ, or the orders that two timelines show.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

/// What is compared: a program, or a timeline, of which only the order of the compute lanes is
/// known.
struct DiffSide {
  std::string name;
  std::optional<Program> program;
  Timeline timeline;  // where there is no program
};

/// One device of both, by its place; by its name where both have the same names.
struct DeviceDiff {
  std::string name;  // "gpu0", or "gpu0 / rank0"
  int first = -1;    // which device of the first program; -1: none
  int second = -1;   //
  std::size_t first_ops = 0;
  std::size_t second_ops = 0;
  std::size_t differ = 0;               // in only one of the two lists, or in another order
  std::optional<std::size_t> position;  // of the first op that differs, from 0
};

/// The first op that differs, on the device where that is earliest in the list.
struct FirstDifference {
  std::size_t device = 0;  // of ProgramDiff::device
  std::size_t position = 0;
  std::optional<Op> first;  // nothing: the list has ended
  std::optional<Op> second;
  std::string first_context;  // "1F0 1F1 [1F2] 1B0"
  std::string second_context;
};

struct ProgramDiff {
  std::vector<std::string> settings;  // "microbatches: 8, 16": what else differs, a line each
  std::optional<FirstDifference> first;
  std::vector<DeviceDiff> device;
  std::size_t ops = 0;        // of both together, each counted once
  std::size_t reordered = 0;  // on the same device in another order: the fewest to move
  std::size_t elsewhere = 0;  // on another device
  std::size_t repaired = 0;   // overlapped in one only, or with another op
  std::vector<Op> only_first;
  std::vector<Op> only_second;
  std::vector<std::string> notes;  // what was not compared

  std::size_t differing() const {
    return reordered + elsewhere + repaired + only_first.size() + only_second.size();
  }
  bool equal() const { return settings.empty() && !first && differing() == 0; }
};

/// Messages, updates, reductions or copies that one side does not have at all are left out of the
/// other's, since passes add them. The schedule's name is free text and not compared.
ProgramDiff diff_of(const DiffSide& first, const DiffSide& second);

}  // namespace stageline
