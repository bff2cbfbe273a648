// A lowering that cannot go on, and why: slow, and in words. For sim/compile.cpp alone.
#pragma once

#include <cstdint>
#include <vector>

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
};

/// The op needs what no op of the program makes. Throws ProgramError.
[[noreturn]] void explain_missing(const Standstill& still, Op op);

/// The lane is stuck, and follows others that are: throws the cycle as a Deadlock.
[[noreturn]] void explain_deadlock(const Standstill& still, std::uint32_t lane);

}  // namespace stageline
