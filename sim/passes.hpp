// From what a scheduler writes (compute only) to what runs. Each pass takes a program that
// validate() lets through, returns a new one and leaves what is already present alone.
#pragma once

#include "sim/costs.hpp"
#include "sim/program.hpp"

namespace stageline {

/// A U behind the last gradient of every update, unless the stage has one already.
Program add_updates(Program program);

/// REDUCE_GRAD before every U of a replicated stage.
Program add_reductions(Program program);

/// SEND behind the producer and RECV before the reader, wherever an edge joins two devices; where
/// the roles of a stage are apart, also of its stash (unless it is offloaded) and of new weights
/// (unless weights_transfer is off).
Program add_transfers(Program program);

/// I directly followed by the W of the same stage and micro-batch becomes B.
Program merge_backward(Program program);

/// All that a compute-only program needs to run on these costs: updates, reductions, and transfers
/// where any route in use costs time or the roles of a stage are apart.
Program complete(Program program, const Costs& costs);

}  // namespace stageline
