// One operation of a device: kind, stage, micro-batch, part. Printed and parsed in PyTorch's
// spelling ("0F3", "2B1", "1SEND_F0").
#pragma once

#include <array>
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
  backward,          // B   I and W in one indivisible op
  recompute,         // R   forward again, to rebuild the stash
  update,            // U   optimizer step; its number counts updates, not micro-batches
  reduce_grad,       // REDUCE_GRAD  all-reduce between replicas; numbered as U
  send_forward,      // SEND_F  an activation is sent
  receive_forward,   // RECV_F  and received
  send_backward,     // SEND_B  a gradient is sent
  receive_backward,  // RECV_B  and received
  offload,           // OFFLOAD   stash to host memory
  prefetch,          // PREFETCH  stash back to the device
  send_stash,        // SEND_STASH    stash to a backward on another device than its forward
  receive_stash,     // RECV_STASH    and received
  send_weights,      // SEND_WEIGHTS  after an update, to the other devices that read the weights
  receive_weights,   // RECV_WEIGHTS  numbered as U
};
inline constexpr int op_kinds = 17;

inline constexpr int max_stages = 65535;
inline constexpr int max_parts = 127;

/// 8 bytes. `part` is the part of a divided I, the replica of U and REDUCE_GRAD, of R and PREFETCH
/// where roles are split the device (sim/stash_readers.hpp), and for a message the index of its
/// wire among the stage's outgoing (SEND) or incoming (RECV) wires; usually there is one wire per
/// stage edge (see wires_of in sim/rules.hpp). `overlapped`: this op and the next in the list are
/// one indivisible task.
struct Op {
  OpKind kind = OpKind::forward;
  std::uint8_t part : 7 = 0;
  std::uint8_t overlapped : 1 = 0;
  std::uint16_t stage = 0;
  std::uint32_t microbatch = 0;

  friend auto operator<=>(const Op&, const Op&) = default;
};
static_assert(sizeof(Op) == 8);

/// An op of that kind. `number`: a micro-batch, or an update where the kind counts updates.
constexpr Op op_of(OpKind kind, int stage, std::uint32_t number, int part = 0) {
  Op op;
  op.kind = kind;
  op.part = static_cast<std::uint8_t>(part & max_parts);
  op.stage = static_cast<std::uint16_t>(stage);
  op.microbatch = number;
  return op;
}

/// The same op without the overlapped mark, as used in look-ups.
constexpr Op plain(Op op) {
  op.overlapped = 0;
  return op;
}

/// "F", "SEND_F", ...: the spelling of the kind in the program text.
std::string_view symbol(OpKind kind);

/// "0F3", "1I2.1". The overlapped mark is printed by the program text, not here.
std::string print(Op op);

/// The op spelled by the whole of `text`; empty if it is not an op.
std::optional<Op> parse_op(std::string_view text);

/// The lane of a device on which an op runs. Lanes run in parallel; each runs one op at a time, in
/// program order (receives are posted ahead and do not queue).
enum class LaneKind : std::uint8_t { compute, send, receive, copy_out, copy_in };
inline constexpr int lane_kinds = 5;
inline constexpr std::array all_lane_kinds{LaneKind::compute, LaneKind::send, LaneKind::receive,
                                           LaneKind::copy_out, LaneKind::copy_in};
std::string_view name(LaneKind kind);
/// Whether a lane carries messages and reductions, which what-ifs take to be free.
constexpr bool is_communication(LaneKind kind) {
  return kind == LaneKind::send || kind == LaneKind::receive;
}

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
    case OpKind::send_stash:
    case OpKind::send_weights:
      return LaneKind::send;
    case OpKind::receive_forward:
    case OpKind::receive_backward:
    case OpKind::receive_stash:
    case OpKind::receive_weights:
      return LaneKind::receive;
    case OpKind::offload:
      return LaneKind::copy_out;
    case OpKind::prefetch:
      return LaneKind::copy_in;
  }
  return LaneKind::compute;  // unreachable; g++ requires it
}

/// Whether the op's number is a micro-batch (and not an update).
constexpr bool counts_microbatches(OpKind kind) {
  return kind != OpKind::update && kind != OpKind::reduce_grad && kind != OpKind::send_weights &&
         kind != OpKind::receive_weights;
}

/// The class of an op, which is all that most passes distinguish.
enum class OpClass : std::uint8_t {
  forward,
  backward,  // B, I, W: a whole backward or one of its halves
  recompute,
  update,
  reduction,
  message,  // SEND or RECV of any cargo
  copy,     // OFFLOAD, PREFETCH
};

constexpr OpClass class_of(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
      return OpClass::forward;
    case OpKind::input_grad:
    case OpKind::weight_grad:
    case OpKind::backward:
      return OpClass::backward;
    case OpKind::recompute:
      return OpClass::recompute;
    case OpKind::update:
      return OpClass::update;
    case OpKind::reduce_grad:
      return OpClass::reduction;
    case OpKind::send_forward:
    case OpKind::receive_forward:
    case OpKind::send_backward:
    case OpKind::receive_backward:
    case OpKind::send_stash:
    case OpKind::receive_stash:
    case OpKind::send_weights:
    case OpKind::receive_weights:
      return OpClass::message;
    case OpKind::offload:
    case OpKind::prefetch:
      return OpClass::copy;
  }
  return OpClass::copy;  // unreachable; g++ requires it
}

/// The payload of a message.
enum class Cargo : std::uint8_t { activation, gradient, stash, weights };
inline constexpr int cargoes = 4;

/// The payload of a message kind; empty for other kinds.
constexpr std::optional<Cargo> cargo_of(OpKind kind) {
  switch (kind) {
    case OpKind::send_forward:
    case OpKind::receive_forward:
      return Cargo::activation;
    case OpKind::send_backward:
    case OpKind::receive_backward:
      return Cargo::gradient;
    case OpKind::send_stash:
    case OpKind::receive_stash:
      return Cargo::stash;
    case OpKind::send_weights:
    case OpKind::receive_weights:
      return Cargo::weights;
    case OpKind::forward:
    case OpKind::input_grad:
    case OpKind::weight_grad:
    case OpKind::backward:
    case OpKind::recompute:
    case OpKind::update:
    case OpKind::reduce_grad:
    case OpKind::offload:
    case OpKind::prefetch:
      return std::nullopt;
  }
  return std::nullopt;
}
constexpr OpKind send_of(Cargo cargo) {
  constexpr OpKind kinds[] = {OpKind::send_forward, OpKind::send_backward, OpKind::send_stash,
                              OpKind::send_weights};
  return kinds[static_cast<std::size_t>(cargo)];
}
constexpr OpKind receive_of(Cargo cargo) {
  constexpr OpKind kinds[] = {OpKind::receive_forward, OpKind::receive_backward,
                              OpKind::receive_stash, OpKind::receive_weights};
  return kinds[static_cast<std::size_t>(cargo)];
}
/// Whether the op sends a message (a reduction between replicas does not).
constexpr bool is_send(OpKind kind) { return cargo_of(kind) && lane_of(kind) == LaneKind::send; }

}  // namespace stageline
