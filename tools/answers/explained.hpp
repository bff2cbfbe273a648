// Why a run takes as long as it does: from the devices' peak to the step that was measured.
//
//   at the peak        ████                             the model's FLOPs
//   products               ███                          below the peak
//   …                         ████████                  by kind of kernel, by cause of idling
//   not explained                     ████              measured less predicted
//   measured           ███████████████████
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "tools/answers/measured_step.hpp"
#include "tools/answers/question.hpp"
#include "tools/answers/step_parts.hpp"
#include "tools/study/evidence/evidence.hpp"
#include "tools/study/outcome.hpp"

namespace stageline::answers {

struct ExplainQuestion : SettingQuestion {
  std::vector<MeasuredValue> measured;   // at least one
  std::optional<Bytes> memory_measured;  // peak of the fullest device
  std::int64_t samples_measured = 0;     // of the measured step, where a log says it; 0: not
};

/// A cause of what is not explained, as simulated.
struct Suspect {
  std::string name;   // "slow network"
  std::string words;  // "the network between machines carries 1/4 of its rate"
  std::string check;  // what would show it
  std::string flags;  // how to ask for the same: "--slow network:4"
  Time step{};        // predicted with it, of as many samples as the measured step
  double strength = 0;
};

struct Explanation {
  Setting setting;
  Case asked;
  Outcome outcome;
  TrainingRates rates;
  std::optional<Interval> interval{};  // of the predicted step; empty: nothing is claimed
  StepReading measured;
  std::vector<StepPart> parts;    // they add up to the measured step, "not explained" the last
  std::vector<Suspect> suspects;  // the likeliest first, at most 3; empty where little is left
  std::optional<Bytes> memory_measured;
  /// Whether measured / predicted is within the interval; true without one.
  bool fits_evidence() const {
    return !interval || (1 + longer() >= interval->low && 1 + longer() <= interval->high);
  }
  /// measured / predicted - 1.
  double longer() const { return to_seconds(measured.step) / to_seconds(outcome.step_time) - 1; }
};

/// What is not explained and below that share of the prediction has no suspects: dense models on
/// known software are predicted so well.
inline constexpr double little = 0.05;

/// Throws what opened_case(), study() and measured_step() throw, and UsageError for a trace that
/// takes no time, and where the measured step is of another number of samples.
Explanation answer(const ExplainQuestion& question);

}  // namespace stageline::answers
