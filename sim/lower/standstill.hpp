// A lowering that cannot go on, and why: slow, and in words. For sim/lower/compile.cpp alone.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/errors.hpp"
#include "sim/rules.hpp"

namespace stageline {

/// What a slot holds about its product: the task that made it, or that nobody has yet, with the
/// head of the list of lanes that wait for it, or that nobody ever will.
using Slot = std::uint32_t;
constexpr Slot nobody = 0xffffffff;
constexpr Slot pending = 0xfffffffe;
constexpr Slot waited_for = 0x80000000;  // | lane
constexpr std::uint32_t no_lane = 0xffffffff;

/// Where the walk along the lanes has come to.
struct Standstill {
  const Program& program;
  const StageGraph& stages;
  const ProductIndex& index;
  const std::vector<Slot>& slot;           // by product
  const std::vector<Op>& ops;              // by lane
  const std::vector<std::uint32_t>& head;  // by lane, into ops: what is next
  const std::vector<std::uint32_t>& end;   // by lane, into ops
  /// By slot of a message, the lane that has posted its end of it, where messages block.
  const std::vector<std::uint32_t>& posted;
};
/// A lane that nobody waits for any longer.
constexpr std::uint32_t gone = 0xfffffffe;

/// How many messages that block stand together at the head of the lane's list; 0 where none does.
std::uint32_t batch_size(const Standstill& still, std::uint32_t lane);

/// The op needs what no op of the program makes. Throws ProgramError.
[[noreturn]] void explain_missing(const Standstill& still, Op op);

/// The lane is stuck, and follows others that are: the cycle. `around`, where there is one, gets
/// its lanes, those that wait.
Deadlock deadlock_of(const Standstill& still, std::uint32_t lane,
                     std::vector<std::uint32_t>* around = nullptr);

}  // namespace stageline
