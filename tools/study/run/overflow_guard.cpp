#include "tools/study/run/overflow_guard.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/problem.hpp"

namespace stageline {
namespace {

void check_counts(const Case& asked) {
  if (asked.program) return;  // its reader has checked its counts
  if (asked.microbatches < 1) {
    throw UsageError(
        fmt::format("--microbatches must be at least 1 (it is {})", asked.microbatches));
  }
  if (asked.steps < 0) {
    throw UsageError(fmt::format("--steps must be at least 1 (it is {})", asked.steps));
  }
  const std::int64_t all = std::int64_t{asked.microbatches} * std::max(asked.steps, 1);
  if (all <= most_forwards) return;
  refuse_forwards(fmt::format("{} micro-batches × {} step{}", asked.microbatches,
                              std::max(asked.steps, 1), asked.steps > 1 ? "s" : ""),
                  static_cast<double>(all), "micro-batches or steps");
}

}  // namespace

// In floating point, which cannot overflow.
void check_magnitudes(const Case& asked) {
  check_counts(asked);
  const double most_seconds = to_seconds(longest_run);
  const auto most_bytes = static_cast<double>(most_bytes_held.count);
  const auto devices = static_cast<double>(asked.cluster.devices.size());
  const auto per_step = static_cast<double>(std::max(asked.microbatches, 1));
  // Enough for the steady state: some steps, or a stream through the pipe and back several times.
  const double microbatches =
      std::max({4 * per_step, per_step * std::max(asked.steps, 1), 16 * devices + 48});
  double slowest = 1;
  for (const Device& device : asked.cluster.devices) {
    for (const double rate : {device.rate, device.memory_rate}) {
      if (rate > 0) slowest = std::min(slowest, rate);
    }
  }
  double time = 0;
  double weights = 0;
  double state = 0;
  double stash = 0;
  for (const Layer& layer : asked.model.layers) {
    const double apart = to_seconds(layer.input_grad) + to_seconds(layer.weight_grad);
    time += to_seconds(layer.forward) + std::max(apart, to_seconds(layer.backward)) +
            to_seconds(layer.update);
    weights += static_cast<double>(layer.weights.count);
    state += static_cast<double>(layer.gradients.count) +
             static_cast<double>(layer.optimizer_state.count);
    stash += static_cast<double>(layer.stash_input_grad.count) +
             static_cast<double>(layer.stash_weight_grad.count) +
             static_cast<double>(layer.stash_gradient.count) +
             2 * static_cast<double>(layer.output.count);
  }
  time /= slowest;
  if (time * microbatches > most_seconds) {
    throw UsageError(fmt::format(
        "the layers of \"{}\" take {:.3g} s together, and {:g} micro-batches of them take longer than the clock's {:.3g} s (53 days); check the unit of its times",
        asked.model.name, time, microbatches, most_seconds));
  }
  // All stages on one device at worst: two versions of the weights a device that they cross on
  // their way, and what all micro-batches of a step leave.
  const double versions = 2 * devices + 1;
  const double bytes = weights * versions + state + stash * per_step;
  if (bytes > most_bytes) {
    throw UsageError(fmt::format(
        "the layers of \"{}\" may need {:.3g} bytes ({:.3g} of weights × {:g} versions, {:.3g} of gradients and optimizer state, {:.3g} stashed × {:g} micro-batches), more than {:.3g}; check the unit of its sizes",
        asked.model.name, bytes, weights, versions, state, stash, per_step, most_bytes));
  }
}

}  // namespace stageline
