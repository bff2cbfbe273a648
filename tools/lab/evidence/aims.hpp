// The simulator's accuracy aims, and the figures measured against them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/lab/evidence/judge.hpp"

namespace stageline::lab {

// Errors as shares of the measured run or of the measured peak.
// Beyond the machine's own noise where that is measured.
inline constexpr double aim_mean_error = 0.03;
inline constexpr double aim_bias = 0.01;
inline constexpr double aim_worst_error = 0.08;
inline constexpr double aim_idle_error = 0.05;

/// One figure of the summary, as text. `met` is empty for a figure without an aim or without cases.
struct Aim {
  std::string figure;
  std::string is;
  std::string aim;
  std::optional<bool> met;
  std::string where = "";  // name of its case
};

/// The figures of the cases held out; below them the figures needed to interpret them: noise,
/// messages, and the cases that the calibration has seen.
std::vector<Aim> aims_of(const Evidence& evidence, const EvidenceJudgement& judgement);

/// The clearest pair in the wrong order, in a sentence; "" where there is none.
std::string worst_pair_text(const Evidence& evidence, const EvidenceJudgement& judgement);

/// "+1.2 %", "-0.4 %", "0.0 %": with a sign unless it rounds to zero.
std::string signed_percent(double fraction);

}  // namespace stageline::lab
