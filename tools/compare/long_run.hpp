// A long run on a machine that fails, played many times.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/compare/uncertainty.hpp"

namespace stageline {

struct LongRunRequest {
  Failures failures;  // of which an interval of 0 is Daly's
  double work = 0;    // seconds of steps
  std::int64_t scenarios = 10'000;
  std::uint64_t seed = 1;
  int threads = 0;  // 0: one a core; changes no result
  const std::atomic<bool>* stop = nullptr;
};

/// From the first step to the end of the last, in seconds; means and quantiles over the scenarios,
/// exact. Failures arrive as a Poisson process, during checkpoints and restarts, too; work since
/// the last checkpoint is lost; the last interval ends without one.
struct LongRun {
  double mean = 0;
  double p5 = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double useful = 0;           // work over mean
  double failures = 0;         // mean number
  std::int64_t scenarios = 0;  // fewer than asked for where `stop` ended it
};

/// Nothing where `stop` ended it before the first scenario. Scenario k is the same whatever the
/// number of scenarios and threads. Throws UsageError where the failures of all scenarios are more
/// than can be played (10⁹).
std::optional<LongRun> long_run(const LongRunRequest& request);

}  // namespace stageline
