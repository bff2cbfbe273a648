#include "sim/analysis/blocking_time.hpp"

namespace stageline {

Time blocking_time(const BlockingTimes& times, OpKind kind) {
  switch (kind) {
    case OpKind::forward:
      return times.forward;
    case OpKind::input_grad:
      return times.input_grad;
    case OpKind::weight_grad:
      return times.weight_grad;
    case OpKind::backward:
      return times.backward;
    case OpKind::recompute:
      return times.recompute;
    case OpKind::update:
      return times.update;
    case OpKind::reduce_grad:
    case OpKind::send_forward:
    case OpKind::receive_forward:
    case OpKind::send_backward:
    case OpKind::receive_backward:
    case OpKind::offload:
    case OpKind::prefetch:
    case OpKind::send_stash:
    case OpKind::receive_stash:
    case OpKind::send_weights:
    case OpKind::receive_weights:
      return {};
  }
  return {};  // unreachable; g++ requires it
}

}  // namespace stageline
