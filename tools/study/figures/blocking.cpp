// Adds up the blocking collectives of a program's ops.
#include "tools/study/figures/blocking.hpp"

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline {

Time blocking_of(const BlockingTimes& times, OpKind kind) {
  switch (class_of(kind)) {
    case OpClass::forward:
      return times.forward;
    case OpClass::backward:
      if (kind == OpKind::backward) return times.backward;
      return kind == OpKind::input_grad ? times.input_grad : times.weight_grad;
    case OpClass::recompute:
      return times.recompute;
    case OpClass::update:
      return times.update;
    case OpClass::reduction:
    case OpClass::message:
    case OpClass::copy:
      return Time{};
  }
  return Time{};
}

double blocking_fraction(const Outcome& outcome) {
  if (outcome.facts) return outcome.facts->blocking;
  if (outcome.step_time == Time{}) return 0;
  double seconds = 0;
  for (const std::vector<Op>& list : outcome.program.ops) {
    for (const Op op : list) {
      seconds += to_seconds(blocking_of(outcome.costs.stage[op.stage].blocking, op.kind));
    }
  }
  return seconds / outcome.program.steps / (outcome.devices * to_seconds(outcome.step_time));
}

GroupShares blocking_of_busiest(const Outcome& outcome) {
  if (outcome.facts) return outcome.facts->blocking_by_group;
  GroupShares shares{};
  const std::vector<DeviceMetrics>& devices = outcome.metrics.device;
  if (devices.empty() || outcome.step_time == Time{}) return shares;
  const auto busiest = std::max_element(
      devices.begin(), devices.end(),
      [](const DeviceMetrics& a, const DeviceMetrics& b) { return a.busy < b.busy; });
  const double run = outcome.program.steps * to_seconds(outcome.step_time);
  for (const Op op : nth(outcome.program.ops, busiest - devices.begin())) {
    if (as_size(op.stage) >= outcome.costs.stage.size()) continue;  // measured: costs are unknown
    const auto& times = nth(outcome.costs.stage, op.stage).blocking_by;
    for (std::size_t g = 0; g < times.size(); ++g) {
      shares[g] += to_seconds(blocking_of(times[g], op.kind)) / run;
    }
  }
  return shares;
}

}  // namespace stageline
