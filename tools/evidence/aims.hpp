// What is asked of the simulator, and what it gives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/evidence/judge.hpp"

namespace stageline {

// Shares of the measured run; of the measured peak.
inline constexpr double aim_mean_error = 0.03;
inline constexpr double aim_worst_error = 0.08;
inline constexpr double aim_idle_error = 0.05;
inline constexpr double aim_peak_error = 0.03;

/// One figure of the summary, as text. Without `met` there is nothing to meet, or no case.
struct Aim {
  std::string figure;
  std::string is;
  std::string aim;
  std::optional<bool> met;
  std::string where = "";  // the case that it is of
};

/// The figures of the cases held out; below them what they are to be read with: noise, messages,
/// and the cases that the calibration has seen.
std::vector<Aim> aims_of(const Evidence& evidence, const Judgement& judgement);

/// The clearest pair that is not in order, in a sentence; "" where there is none.
std::string worst_pair_text(const Evidence& evidence, const Judgement& judgement);

/// "+1.2 %", "-0.4 %", "0.0 %": with a sign unless it is nothing.
std::string signed_percent(double fraction);

}  // namespace stageline
