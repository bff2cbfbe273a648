#include "tools/compare/long_run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cost_models/perturbation/elementary.hpp"
#include "sim/base/errors.hpp"
#include "sim/batch/philox.hpp"
#include "tools/base/parallel.hpp"

namespace stageline {
namespace {

constexpr double most_failures = 1e9;
constexpr std::size_t call_scenarios = 64;  // scenarios of one call

// Exponential waiting times of one scenario.
class Waits {
 public:
  Waits(std::uint64_t seed, std::uint64_t scenario, double mean)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)},
        counter_{static_cast<std::uint32_t>(scenario), static_cast<std::uint32_t>(scenario >> 32U),
                 0, stream},
        mean_(mean) {}

  double next() {
    if (used_ == words_.size()) {
      words_ = philox(counter_, key_);
      ++counter_[2];
      used_ = 0;
    }
    return -mean_ * portable_log(uniform_of(words_[used_++]));
  }

 private:
  static constexpr std::uint32_t stream = 0x4641494C;  // apart from those of jitter
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter words_{};
  std::size_t used_ = 4;
  double mean_;
};

struct Played {
  double time = 0;
  std::int64_t failures = 0;
};

// From failure to failure: whole intervals that end before it last, the rest is lost. What has been
// waited for says nothing on the next failure.
Played played(const Failures& failures, double interval, double work, Waits waits) {
  Played run;
  const double both = interval + failures.checkpoint;
  double left = work;
  while (true) {
    const double intervals = std::ceil(left / interval);
    const double undisturbed = left + (intervals - 1) * failures.checkpoint;
    const double failure = waits.next();
    if (failure >= undisturbed) {
      run.time += undisturbed;
      return run;
    }
    ++run.failures;
    run.time += failure;
    left -= interval * std::min(std::floor(failure / both), intervals - 1);
    for (double again = waits.next(); again < failures.restart; again = waits.next()) {
      run.time += again;
      ++run.failures;
    }
    run.time += failures.restart;
  }
}

double quantile_of(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

std::optional<LongRun> long_run(const LongRunRequest& request) {
  const Failures& failures = request.failures;
  const UsefulShare share = useful_share(failures);
  // A run of one interval ends without a checkpoint.
  Failures as_played = failures;
  as_played.interval = std::min(share.interval, request.work);
  if (request.work <= share.interval) as_played.checkpoint = 0;
  const double each = request.work / useful_share(as_played).useful / failures.between;
  if (!(each * static_cast<double>(request.scenarios) <= most_failures)) {
    throw UsageError(fmt::format(
        "a run with {:.3g} failures in each of {} scenarios is more than can be played ({:.0e} in "
        "all); give a shorter --run, or fewer --scenarios",
        each, request.scenarios, most_failures));
  }
  const auto count = static_cast<std::size_t>(request.scenarios);
  std::vector<Played> runs(count);
  const std::size_t chunks = (count + call_scenarios - 1) / call_scenarios;
  std::vector<char> done(chunks);
  in_parallel(chunks, request.threads > 0 ? request.threads : available_cores(),
              [&](std::size_t c) {
                if (request.stop != nullptr && request.stop->load()) return;
                for (std::size_t k = c * call_scenarios;
                     k < std::min(count, (c + 1) * call_scenarios); ++k) {
                  runs[k] = played(failures, share.interval, request.work,
                                   Waits(request.seed, k, failures.between));
                }
                done[c] = 1;
              });
  const auto missing = std::find(done.begin(), done.end(), 0);
  runs.resize(std::min(count, static_cast<std::size_t>(missing - done.begin()) * call_scenarios));
  if (runs.empty()) return std::nullopt;
  LongRun result;
  std::vector<double> times;
  const auto all = static_cast<double>(runs.size());
  for (const Played& run : runs) {
    times.push_back(run.time);
    result.mean += run.time / all;
    result.failures += static_cast<double>(run.failures) / all;
  }
  std::sort(times.begin(), times.end());
  result.p5 = quantile_of(times, 0.05);
  result.p50 = quantile_of(times, 0.5);
  result.p95 = quantile_of(times, 0.95);
  result.p99 = quantile_of(times, 0.99);
  result.useful = request.work / result.mean;
  result.scenarios = static_cast<std::int64_t>(runs.size());
  return result;
}

}  // namespace stageline
