// The time of a compute op.
#pragma once

#include "sim/costs.hpp"
#include "sim/placement.hpp"
#include "sim/rules.hpp"

namespace stageline {

/// Alone on a device of pace 1. Of an I that is divided between devices, that of its part; zero for
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

}  // namespace stageline
