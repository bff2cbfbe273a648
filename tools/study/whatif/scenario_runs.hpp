// One schedule under many scenarios: how long its step takes in each.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/perturbation/perturbation.hpp"
#include "tools/base/progress.hpp"
#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// How the scenarios are simulated.
enum class ScenarioEngine : std::uint8_t {
  batched,  // 16 at once; nothing is shared
  frozen,   // 16 at once; shared links serve transfers in the order of the nominal run
  single,   // one by one, shared links as ever
};
/// "batched", "frozen", "single", as in JSON.
std::string_view name(ScenarioEngine engine);

struct ScenarioRequest {
  Perturbation perturbation;
  std::int64_t scenarios = 10'000;
  std::int64_t first = 0;                   // number of the first one, a multiple of 16
  std::int64_t traced = 256;                // of the first of them, the critical path is walked
  int threads = 0;                          // 0: as many as the machine has; changes no result
  bool freeze = false;                      // take ScenarioEngine::frozen where links are shared
  const std::atomic<bool>* stop = nullptr;  // ends the run early when it becomes true
  Progress progress{};                      // in scenarios, of each schedule by itself
};

/// A share of the critical path.
struct CriticalShare {
  std::string name;  // of a device; "messages"
  double share = 0;  // of the critical path's time, mean over the scenarios that were traced
  double often = 0;  // share of the scenarios in which it is the largest
};

struct ScenarioSteps {
  Time nominal{};  // the same step without perturbation
  /// By scenario, of a run of `steps`, by which the nominal step is that of the steady state. With
  /// a flush: from the end of the last step but one to the end of the last. In a stream: in the
  /// middle, where the pipeline neither fills nor drains, over as many micro-batches as its rhythm
  /// needs to come back, and for one step.
  std::vector<Time> step;
  int steps = 0;
  ScenarioEngine engine = ScenarioEngine::batched;
  double frozen_error = 0;  // frozen: mean of |frozen / single − 1| over the first scenarios
  std::vector<CriticalShare> critical;  // of the first scenarios, the largest share first
  bool partial = false;                 // `stop` ended the run: the first scenarios alone
};

inline constexpr std::int64_t most_scenarios = 100'000'000;

/// `nominal`: the case's outcome. Scenario k is the same whatever the schedule, the number of
/// scenarios or threads. At most a block of durations a thread is in memory at once. Throws
/// UsageError for fewer than 1 scenario or more than `most_scenarios`, and where the ops of one
/// last longer than `longest_run` together; what Scenarios throws, and what simulating the case
/// throws.
ScenarioSteps scenario_steps(const Case& asked, const Outcome& nominal,
                             const ScenarioRequest& request);

/// The quantile of sorted times by linear interpolation (as NumPy's percentile); 0 ≤ share ≤ 1, at
/// least one time.
Time quantile(const std::vector<Time>& sorted, double share);

/// Mean and quantiles.
struct Distribution {
  Time mean{};
  Time deviation{};  // standard
  Time p5{};
  Time p50{};
  Time p95{};
  Time p99{};
};
/// Exact: all times are sorted. At least one.
Distribution distribution_of(std::vector<Time> times);

/// By schedule: the share of the scenarios in which its rate is the highest, ties shared. Rates are
/// samples / step: samples[i] in steps[i][k]. All have as many scenarios.
std::vector<double> shares_of_best(const std::vector<std::vector<Time>>& steps,
                                   const std::vector<double>& samples);

}  // namespace stageline
