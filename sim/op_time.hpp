// The time of a compute op, and which part of it is collectives.
#pragma once

#include <algorithm>
#include <optional>

#include "sim/costs.hpp"
#include "sim/placement.hpp"
#include "sim/rules.hpp"

namespace stageline {

/// The time alone on a device of pace 1: for an I divided between devices, of its part; zero for
/// messages, copies and reductions.
inline Time compute_time(const StageCosts& costs, const StagePlace& place, Op op) {
  switch (class_of(op.kind)) {
    case OpClass::forward:
      return costs.forward;
    case OpClass::backward:
      if (op.kind == OpKind::backward) return costs.backward;
      if (op.kind == OpKind::weight_grad) return costs.weight_grad;
      return Time{part_of(costs.input_grad.count(), place, static_cast<int>(op.part))};
    case OpClass::recompute:
      return costs.recompute;
    case OpClass::update:
      return costs.update;
    case OpClass::reduction:
    case OpClass::message:
    case OpClass::copy:
      return Time{};
  }
  return Time{};
}

/// The blocking collectives in it, as part of compute_time().
inline Time blocked_time(const StageCosts& costs, const StagePlace& place, Op op) {
  const BlockingTimes& blocking = costs.blocking;
  switch (class_of(op.kind)) {
    case OpClass::forward:
      return blocking.forward;
    case OpClass::backward:
      if (op.kind == OpKind::backward) return blocking.backward;
      if (op.kind == OpKind::weight_grad) return blocking.weight_grad;
      return Time{part_of(blocking.input_grad.count(), place, static_cast<int>(op.part))};
    case OpClass::recompute:
      return blocking.recompute;
    case OpClass::update:
      return blocking.update;
    case OpClass::reduction:
    case OpClass::message:
    case OpClass::copy:
      return Time{};
  }
  return Time{};
}

/// On that device: what it computes, at the device's pace, and the blocking collectives as they
/// are, since a device that computes slower does not move bytes slower.
inline Time time_on(const Costs& costs, const Placement& placement, Op op, int device) {
  const StageCosts& stage = costs.stage[op.stage];
  const StagePlace& place = placement.stage[op.stage];
  const Time all = compute_time(stage, place, op);
  const Time blocked = std::min(blocked_time(stage, place, op), all);
  return blocked + costs.paced(all - blocked, device);
}

/// The same of a task: of an op, or of an overlapped pair.
inline Time task_time_on(const Costs& costs, const Placement& placement, Op op,
                         std::optional<Op> partner, int device) {
  const Time first = time_on(costs, placement, op, device);
  if (!partner) return first;
  return pair_time(first, time_on(costs, placement, *partner, device), costs.pair_overlap);
}

}  // namespace stageline
