// From the program of a scheduler (compute only) to one that runs. Each pass takes a program that
// validate() accepts, returns a new one and keeps the updates, reductions or messages that are
// there.
#pragma once

#include <string>

#include "sim/costs.hpp"
#include "sim/program.hpp"

namespace stageline {

/// A U after the last gradient of every update, unless the stage has one already; under flush after
/// the step's last gradient of all stages on the device, the deepest first.
Program add_updates(Program program);

/// REDUCE_GRAD before every U of a replicated stage.
Program add_reductions(Program program);

/// SEND after the producer and RECV before the reader of every edge that joins two devices. Where
/// the roles of a stage are split, its stash (unless it is offloaded) and its new weights (unless
/// weights_transfer is off) are transferred too. Where messages are async, a RECV comes before
/// those of messages that the same device sends later.
///
/// Where messages block, neighbouring messages get one order for all devices, that of an
/// asynchronous run on unit costs. With Megatron's schedules this gives Megatron's pairs (send
/// forward and receive backward, send backward and receive forward). Where devices would still
/// deadlock, every message is moved to its place in that run, as PyTorch lowers a schedule: that
/// order always finishes if any does, but may receive earlier than is good.
Program add_transfers(Program program);

/// The same, with the deadlock of the usual order where that is not kept; else "".
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
/// if any route in use costs time, messages block or the roles of a stage are split. `reordered`,
/// if not null, gets Transferred::deadlock.
Program complete(Program program, const Costs& costs, std::string* reordered = nullptr);

}  // namespace stageline
