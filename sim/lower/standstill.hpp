// Explains why a lowering cannot go on. For sim/lower/ alone.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/deadlock.hpp"
#include "sim/rules.hpp"

namespace stageline {

/// The state of a product: the task that made it, or that it is pending, with the head of the list
/// of lanes that wait for it, or that no op makes it.
using Slot = std::uint32_t;
constexpr Slot nobody = 0xffffffff;
constexpr Slot pending = 0xfffffffe;
constexpr Slot waited_for = 0x80000000;  // | lane
constexpr std::uint32_t no_lane = 0xffffffff;

/// The state of a lowering.
struct Standstill {
  const Program& program;
  const StageGraph& stages;
  const ProductIndex& index;
  const std::vector<Slot>& slot;           // by product
  const std::vector<Op>& ops;              // by lane
  const std::vector<std::uint32_t>& head;  // by lane, into ops: its next op
  const std::vector<std::uint32_t>& end;   // by lane, into ops
  /// By slot of a message, the lane that has posted its end; empty unless messages block.
  const std::vector<std::uint32_t>& posted;
  /// By slot, the lane that makes the product (of a message, that reads it), which never waits for
  /// it; empty unless all deadlocks are searched.
  const std::vector<std::uint32_t>& maker;
};
/// In `posted`: the other end no longer waits for the message.
constexpr std::uint32_t gone = 0xfffffffe;

/// The number of blocking messages at the head of the lane's list that are one batch.
std::uint32_t batch_size(const Standstill& still, std::uint32_t lane);

/// Throws ProgramError: the op needs a product that no op of the program makes.
[[noreturn]] void explain_missing(const Standstill& still, Op op);

/// The cycle of waiting lanes that the stuck lane leads to. `around`, if not null, gets its lanes.
Deadlock deadlock_of(const Standstill& still, std::uint32_t lane,
                     std::vector<std::uint32_t>* around = nullptr);

}  // namespace stageline
