// From what a scheduler writes (compute only) to what runs. Each pass takes a program that
// validate() lets through, returns a new one and leaves what is already present alone.
#pragma once

#include <string>

#include "sim/costs.hpp"
#include "sim/program.hpp"

namespace stageline {

/// A U behind the last gradient of every update, unless the stage has one already; under flush
/// behind the last of the step of all stages on the device, the deepest first.
Program add_updates(Program program);

/// REDUCE_GRAD before every U of a replicated stage.
Program add_reductions(Program program);

/// SEND behind the producer and RECV before the reader, wherever an edge joins two devices; where
/// the roles of a stage are apart, also of its stash (unless it is offloaded) and of new weights
/// (unless weights_transfer is off). Where messages are async, a RECV stands
/// ahead of those of messages that the same device sends here later.
///
/// Where messages block, those that stand together are put in one order for all devices, that of an
/// asynchronous run on unit costs. With Megatron's schedules this makes Megatron's pairs (send
/// forward and receive backward, send backward and receive forward). Where devices would still wait
/// for each other in a circle, every message stands where it is in that run, as PyTorch lowers a
/// schedule: that order always finishes if any does, but may receive sooner than is good.
Program add_transfers(Program program);

/// The same, and why the usual order would deadlock where it is not kept; else "".
struct Transferred {
  Program program;
  std::string deadlock;
};
Transferred with_transfers(Program program);

/// F, I and W take 1 ps, B 2 ps, messages nothing.
Costs unit_costs(const Program& program);

/// I directly followed by the W of the same stage and micro-batch becomes B.
Program merge_backward(Program program);

/// All that a compute-only program needs to run on these costs: updates, reductions, and transfers
/// where any route in use costs time, messages block or the roles of a stage are apart.
/// `reordered`, where there is one, gets Transferred::deadlock.
Program complete(Program program, const Costs& costs, std::string* reordered = nullptr);

}  // namespace stageline
