// The time of a compute op, and which part of it is collectives.
#pragma once

#include <algorithm>
#include <optional>

#include "sim/base/index.hpp"
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

/// Those of the collectives that are in it, as part of compute_time().
inline Time collective_time(const BlockingTimes& times, const StagePlace& place, Op op) {
  switch (class_of(op.kind)) {
    case OpClass::forward:
      return times.forward;
    case OpClass::backward:
      if (op.kind == OpKind::backward) return times.backward;
      if (op.kind == OpKind::weight_grad) return times.weight_grad;
      return Time{part_of(times.input_grad.count(), place, static_cast<int>(op.part))};
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

/// On that device: what it computes, at the device's pace, and the blocking collectives as they
/// are, since a device that computes slower does not move bytes slower.
inline Time time_on(const Costs& costs, const Placement& placement, Op op, int device) {
  const StageCosts& stage = costs.of(op);
  const StagePlace& place = placement.stage[op.stage];
  const Time all = compute_time(stage, place, op);
  const Time blocked = std::min(collective_time(stage.blocking, place, op), all);
  return blocked + costs.paced(all - blocked, device);
}

/// The op as one of an overlapped pair, alone on a device of pace 1.
inline PairHalf pair_half(const Costs& costs, const Placement& placement, Op op) {
  const StageCosts& stage = costs.of(op);
  const StagePlace& place = placement.stage[op.stage];
  const Time time = compute_time(stage, place, op);
  const BlockingTimes& transfers = nth(stage.blocking_by, hidden_in_pairs);
  return {time, std::min(collective_time(transfers, place, op), time)};
}
/// The same on that device.
inline PairHalf pair_half_on(const Costs& costs, const Placement& placement, Op op, int device) {
  return {time_on(costs, placement, op, device), pair_half(costs, placement, op).transfers};
}

/// The same of a task: of an op, or of an overlapped pair.
inline Time task_time_on(const Costs& costs, const Placement& placement, Op op,
                         std::optional<Op> partner, int device) {
  if (!partner) return time_on(costs, placement, op, device);
  return pair_time(costs, pair_half_on(costs, placement, op, device),
                   pair_half_on(costs, placement, *partner, device));
}

/// What an overlapped pair hides of the transfers in its ops: at most all of them.
inline Time hidden_in_pair(const Costs& costs, PairHalf one, PairHalf other) {
  return std::min(one.time + other.time - pair_time(costs, one, other),
                  one.transfers + other.transfers);
}

}  // namespace stageline
