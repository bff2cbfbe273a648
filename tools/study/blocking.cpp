// Adds up the blocking collectives of a program's ops.
#include "tools/study/blocking.hpp"

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
  if (outcome.step_time == Time{}) return 0;
  double seconds = 0;
  for (const std::vector<Op>& list : outcome.program.ops) {
    for (const Op op : list) {
      seconds += to_seconds(blocking_of(outcome.costs.stage[op.stage].blocking, op.kind));
    }
  }
  return seconds / outcome.program.steps / (outcome.devices * to_seconds(outcome.step_time));
}

}  // namespace stageline
