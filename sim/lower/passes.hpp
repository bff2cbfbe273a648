// From the program of a scheduler (compute only) to one that runs. Each pass takes a program that
// validate() accepts, returns a new one and keeps the updates, reductions or messages that are
// there.
#pragma once

#include <string>
#include <vector>

#include "sim/costs.hpp"
#include "sim/program.hpp"

namespace stageline {

/// R before the op that first reads the stash of its micro-batch (before both ops of an overlapped
/// pair), in the stages that are marked; where several devices read it, on each of them. A
/// micro-batch that has an R keeps it. `stages`: by stage.
Program add_recompute(Program program, const std::vector<bool>& stages);

/// OFFLOAD behind F, and PREFETCH as many compute ops as `ahead` (at least 0) before the op that
/// first reads the stash (or the R that makes it, from the stage's input), in the stages that are
/// marked; an overlapped pair is one op. A stash that would be issued back before another op has
/// run stays on the device. Where the roles of a stage are split, all its stashes go by way of the
/// host, instead of by SEND_STASH, to each device that reads them. A stage that has an OFFLOAD
/// keeps its own. Copies that were free are issued from then on. `stages`: by stage.
Program add_offload(Program program, const std::vector<bool>& stages, int ahead);

/// A U after the last gradient of every update, unless the stage has one already; under flush after
/// the step's last gradient of all stages on the device, the deepest first.
Program add_updates(Program program);

/// REDUCE_GRAD before every U of a replicated stage; of all stages where the program has
/// data_ranks. None in those of `without`, by stage; empty: in none. There every U still waits for
/// the gradients of all replicas.
Program add_reductions(Program program, const std::vector<bool>& without = {});

/// By stage, whether nothing is left to be reduced behind the backwards: each has reduced its own
/// (ZeRO 2 and 3 in every micro-batch), or it has no gradients where other stages have some.
std::vector<bool> without_reductions(const Costs& costs);

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

/// Data parallelism over `replicas` copies of a whole pipeline of p devices, as one program: device
/// r·p + d runs what device d runs, on the micro-batches of replica r. Micro-batch m of the
/// pipeline becomes micro-batch m·replicas + r, so that a step has `replicas` times as many and
/// steps keep their numbers; home k of a stage becomes homes k·replicas + r of the stage's
/// replicas, so that a stage of a directional pipeline (Chimera), or of one that replicates it
/// already, keeps its own alternation. Updates keep their numbers and become the updates of all
/// replicas: complete() gives them their REDUCE_GRAD. Windows become `replicas` times as long.
/// Messages that are there stay within their replica.
///
/// `device_names`, by device; default "r1.gpu0" for replica 1 of gpu0. One replica is the program
/// itself. Throws UsageError for a stage with split roles or over 127 devices, delays, lockstep,
/// chunks of sequences, and more than most_forwards forwards. O(ops).
Program replicated(const Program& one_pipeline, int replicas,
                   std::vector<std::string> device_names = {});

/// All that a compute-only program needs to run on these costs: updates, reductions, and transfers
/// if any route in use costs time, messages block or the roles of a stage are split. `reordered`,
/// if not null, gets Transferred::deadlock.
Program complete(Program program, const Costs& costs, std::string* reordered = nullptr);

}  // namespace stageline
