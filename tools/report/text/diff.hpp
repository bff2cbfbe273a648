// Reports the diff of two programs: text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/program_diff.hpp"
#include "sim/base/units.hpp"

namespace stageline {

/// The times of one side, simulated or from its timeline.
struct SideTimes {
  Time makespan{};
  Time step_time{};
  std::vector<std::string> devices;
  std::vector<Time> busy;  // busy time of the compute lane, by device
};

struct DiffReport {
  std::string first_name;
  std::string second_name;
  ProgramDiff diff;
  std::string costs;  // source of the times; empty: there are none
  std::optional<SideTimes> first;
  std::optional<SideTimes> second;
  std::vector<std::string> untimed;  // why a side has no times, a sentence each
  std::vector<std::string> notes;
};

/// "equal", or the first difference, the number of differences, and their cost. `width`: the most
/// columns of a line of a table; 0: any.
std::string diff_text(const DiffReport& report, int width = 0);

/// The same as JSON; the keys are documented in tools/report/json/README.md.
std::string diff_json(const DiffReport& report);

}  // namespace stageline
