// What a diff of two programs says: text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/program_diff.hpp"
#include "sim/units.hpp"

namespace stageline {

/// What one side takes, simulated or as its timeline says.
struct SideTimes {
  Time makespan{};
  Time step_time{};
  std::vector<std::string> devices;
  std::vector<Time> busy;  // of the compute lane, by device
};

struct DiffReport {
  std::string first_name;
  std::string second_name;
  ProgramDiff diff;
  std::string costs;  // where the times come from; empty: there are none
  std::optional<SideTimes> first;
  std::optional<SideTimes> second;
  std::vector<std::string> untimed;  // why a side has none, a sentence each
  std::vector<std::string> notes;
};

/// "equal", or where they first differ, how much, and what that costs.
std::string diff_text(const DiffReport& report);

/// The keys stand in tools/README.md.
std::string diff_json(const DiffReport& report);

}  // namespace stageline
