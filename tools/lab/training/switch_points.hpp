// Compares hybrid trainings that differ only in how many of their steps are pipelined: which of
// them reaches an accuracy first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/lab/training/time_to_accuracy.hpp"

namespace stageline::lab {

/// By ascending number of pipelined steps, each once; a non-pipelined training of the same task
/// counts as 0 steps, whatever its schedule. At least one of them switches on the way.
struct SwitchFamily {
  std::string name;                 // the curves' name without the switch
  std::int64_t steps = 0;           // of the whole training
  std::vector<std::size_t> curves;  // indices into AccuracyStudy::curves
  /// Index into `curves`: the one that reaches the target first, of those with all seeds reaching
  /// it; where there is none, of those with some. Ties go to the earliest switch.
  std::optional<std::size_t> best;
};
std::vector<SwitchFamily> switch_families(const AccuracyStudy& study);

/// The fastest switch, the switches trained beside it, and where the switch did not matter:
/// sentences without a full stop.
std::vector<std::string> switch_words(const AccuracyStudy& study, const SwitchFamily& family);

}  // namespace stageline::lab
