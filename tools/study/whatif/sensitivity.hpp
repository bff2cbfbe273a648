// What the step hangs on: its derivative by every lever, how far that holds, and the step with the
// lever 10 % faster, twice as fast and free.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/base/progress.hpp"
#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"
#include "tools/study/whatif/levers.hpp"

namespace stageline {

/// The step with the times of a lever multiplied by a factor.
struct LeverEffect {
  Lever lever;
  /// d step / d factor over the step, at 1: the share of the critical cycle that is the lever. From
  /// below (faster) and from above (slower): they differ where several cycles are critical.
  double share_faster = 0;
  double share_slower = 0;
  /// The factors up to which these shares hold. For the cycle engine only; `most` is at most
  /// PeriodCurve::most_factor, and then holds for all that was looked at.
  double least = 0;
  double most = 1;
  /// Where the step does not change by 1 %, but by more: the first factor, of those tried, at which
  /// it does, found by bisection: an effect is taken to stay where times change more. Simulated
  /// ones only.
  std::optional<double> gains_from;
  std::optional<double> costs_from;
  Time slower{};  // steps: the times × 1.1,
  Time faster{};  // × 0.9,
  Time twice{};   // × 0.5,
  Time free{};    // × 0
};

/// How the steps of LeverEffect are found.
enum class SensitivityEngine : std::uint8_t {
  cycle,      // the period of the event graph with other times; nothing is shared
  simulated,  // runs with other durations, which serve shared links anew
};
/// "cycle", "simulated", as in JSON.
std::string_view name(SensitivityEngine engine);

struct Sensitivity {
  Time step{};
  /// Whether shares are derived from critical cycles. Else they are finite differences of 1 %.
  bool exact = true;
  SensitivityEngine engine = SensitivityEngine::cycle;
  std::string cycle;                 // the critical one in words; empty where there is none
  int steps = 0;                     // of the run that is looked at
  std::vector<LeverEffect> effects;  // by the gain of 10 %, then of 2×, the largest first
  std::vector<std::string> notes;    // on what is kept and what is not exact
  std::size_t levers = 0;            // of the program; `effects` has fewer where it is partial
  bool partial = false;              // `stop` ended it
};

/// `nominal`: the case's outcome. The order of the ops in their lanes is kept: a schedule that
/// orders by costs would choose anew. Shares are exact where the steady state repeats, links are
/// not shared at fair rates and devices do not slow one another; where links are shared first come,
/// first served, for the order in which they serve now. `threads`: of the simulated engine; 0: as
/// many as the machine has; changes no result. `stop` ends it early when it becomes true, with
/// the levers that were looked at by then. `progress` is in levers. Throws UsageError where the
/// program takes no time, and what simulating the case throws.
Sensitivity sensitivity_of(const Case& asked, const Outcome& nominal, int threads = 0,
                           const std::atomic<bool>* stop = nullptr, const Progress& progress = {});

/// 1 − changed / step: positive where that is faster.
double gain(Time step, Time changed);

/// What to optimize, and what to buy: one sentence.
std::string advice_of(const Sensitivity& found);

}  // namespace stageline
