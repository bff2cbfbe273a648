// One thing a device does: kind, stage, micro-batch, part. Prints and parses itself as PyTorch
// spells it ("0F3", "2B1", "1SEND_F0").
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stageline {

enum class OpKind : std::uint8_t {
  forward,           // F
  input_grad,        // I   dL/d(input)
  weight_grad,       // W   dL/d(weights)
  backward,          // B   I and W as one, indivisible
  recompute,         // R   forward again, to rebuild the stash
  update,            // U   optimizer step; its number counts updates, not micro-batches
  reduce_grad,       // REDUCE_GRAD  all-reduce between replicas; numbered as U
  send_forward,      // SEND_F  an activation leaves
  receive_forward,   // RECV_F
  send_backward,     // SEND_B  a gradient leaves
  receive_backward,  // RECV_B
  offload,           // OFFLOAD   stash to host memory
  prefetch,          // PREFETCH  and back
};
inline constexpr int op_kinds = 13;

/// 8 bytes. `part` says which: part of a divided I; edge of the stage for a message (the
/// how-manieth of its outgoing edges for SEND_F and RECV_B, of its incoming ones for RECV_F and
/// SEND_B); replica for U and REDUCE_GRAD. `overlapped`: this op and the next in the list are one
/// indivisible task.
struct Op {
  OpKind kind = OpKind::forward;
  std::uint8_t part : 7 = 0;
  std::uint8_t overlapped : 1 = 0;
  std::uint16_t stage = 0;
  std::uint32_t microbatch = 0;

  friend auto operator<=>(const Op&, const Op&) = default;
};
static_assert(sizeof(Op) == 8);

inline constexpr int max_stages = 65535;
inline constexpr int max_parts = 127;

/// "F", "SEND_F", ...: the kind as the program text spells it.
std::string_view symbol(OpKind kind);

/// "0F3", "1I2.1". The overlapped mark is the program text's business, not the op's.
std::string print(Op op);

/// The op spelled by the whole of `text`, or nothing.
std::optional<Op> parse_op(std::string_view text);

/// Where an op runs on its device. Lanes run side by side; each does one thing at a time, in the
/// order of the program (receives are posted ahead and need no turn).
enum class LaneKind : std::uint8_t { compute, send, receive, copy_out, copy_in };
inline constexpr int lane_kinds = 5;
std::string_view name(LaneKind kind);

constexpr LaneKind lane_of(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
    case OpKind::input_grad:
    case OpKind::weight_grad:
    case OpKind::backward:
    case OpKind::recompute:
    case OpKind::update:
      return LaneKind::compute;
    case OpKind::reduce_grad:
    case OpKind::send_forward:
    case OpKind::send_backward:
      return LaneKind::send;
    case OpKind::receive_forward:
    case OpKind::receive_backward:
      return LaneKind::receive;
    case OpKind::offload:
      return LaneKind::copy_out;
    case OpKind::prefetch:
      return LaneKind::copy_in;
  }
  return LaneKind::compute;  // unreachable; g++ wants it
}

/// Whether the op's number is a micro-batch (and not an update).
constexpr bool counts_microbatches(OpKind kind) {
  return kind != OpKind::update && kind != OpKind::reduce_grad;
}

}  // namespace stageline
