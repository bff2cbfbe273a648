// How long a step takes once the pipeline runs steadily, found by running long enough.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/analysis/steady_state.hpp"
#include "sim/base/units.hpp"
#include "sim/program.hpp"

namespace stageline {

/// A rhythm comes back after whole rounds: of all replicas, or of a flushed step. `warm_up` rounds
/// are left out at the front and as many at the end; `rounds` in between are looked at.
struct Rhythm {
  int round = 1;    // micro-batches
  int warm_up = 1;  // rounds
  int rounds = 1;
};

/// What to run for a schedule of these micro-batches a step: `total` micro-batches hold the rhythm.
Rhythm rhythm_of(const Placement& placement, int devices, bool synchronous, int microbatches);
int total_microbatches(const Rhythm& rhythm);

/// The micro-batch of the whole program by which steps and rhythms count an op: of an update or a
/// reduction the last one that it uses.
std::uint32_t microbatch_of(const Program& program, Op op);

/// Time of `microbatches` micro-batches from when each (and all before it) was done. `settled`: the
/// last rounds repeat exactly, with a period of one or several rounds; else the mean over all of
/// them.
struct SteadyStep {
  Time time{};
  bool settled = true;
};
SteadyStep steady_step(const std::vector<Time>& ends, const Rhythm& rhythm, int microbatches);

/// The same from a derived period of rounds of `round` micro-batches: rounded once.
Time step_of(const Period& period, int round, int microbatches);

}  // namespace stageline
