// Where two programs or timelines differ, and what that costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/program_diff.hpp"
#include "sim/base/units.hpp"
#include "tools/inputs/recordings.hpp"

namespace stageline::answers {

/// A program or a run.
struct DiffedSide {
  DiffSide compared;
  std::optional<Recording> run{};
  bool program_file = false;
};

/// What programs are priced with; nothing named: every stage alike, free messages.
struct DiffPrices {
  std::string trace{};
  std::string cluster{};
  std::string link{};
  std::string partition = "balanced";
  int profile_batch = 0;
  int microbatch_size = 0;
};

struct DiffQuestion {
  DiffedSide first;
  DiffedSide second;
  DiffPrices prices{};
};

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

/// Throws UsageError where a timeline is to be priced, and for prices that cannot be read.
DiffReport answer(const DiffQuestion& question);

}  // namespace stageline::answers
