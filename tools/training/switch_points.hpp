// Hybrid training by its switch: trainings that differ only in how many of their steps are
// pipelined, and which of them reaches an accuracy first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/training/time_to_accuracy.hpp"

namespace stageline {

/// By rising number of pipelined steps, each once; a non-pipelined training of the same task counts
/// as one with none, whatever its schedule. At least one switches on the way.
struct SwitchFamily {
  std::string name;                 // as a curve's, without the switch
  std::int64_t steps = 0;           // of the whole training
  std::vector<std::size_t> curves;  // into AccuracyStudy::curves
  /// Into `curves`: the one that reaches the target first, of those that all their seeds do; where
  /// there is none, of those that some do. Of equals, the earliest switch.
  std::optional<std::size_t> best;
};
std::vector<SwitchFamily> switch_families(const AccuracyStudy& study);

/// Which switch is the fastest, what was trained beside it, and where the switch did not matter:
/// sentences without a full stop.
std::vector<std::string> switch_words(const AccuracyStudy& study, const SwitchFamily& family);

}  // namespace stageline
