// SVPP (Sun et al. 2025, MEPipe, doi 10.1145/3689031.3717469; order rebuilt): 1F1B over slices of
// sequences, with v chunks of the model on every device, stage k on device k mod p, and I and W
// apart. A group of sequences, together at least as many slices as devices, goes through a device's
// first chunk, then through its second, ...; forwards from a sequence's first slice to its last,
// backwards from the last to the first, chunks the other way round. A device does (p-1-r) + (s-1) +
// (v-1)·group forwards to warm up, with s slices a sequence, then one forward and one I in turn. W
// is r backwards behind I, as in ZB-H1. With groups of max(p, s) slices a device holds v·max(p, s)
// + min(p, s) - 1 of them, and is idle for (p-1)(F+I-W) of a chunk's slice. Which chunk and slice
// comes when is rebuilt from the orders of interleaved_zb and seq1f1b; the paper's variants with
// fewer forwards ahead, and its W in single products that fill every gap, are not there. What a
// slice takes: cost_models/README.md.
//
// Where a digit comes back on a device, it is the slice's next chunk.
//
// figure: devices 2, microbatches 4, sequence_chunks 2, chunks 2, F 1, I 1, W 1
//   0 |01012 bB3aA2bB3aA4dD5cC4dD5cC6fF7eE6fF7eEhHgGhHgG
//   1 | 0101b2aB3bA2aB3dA4cD5dC4cD5fC6eF7fE6eF7hEgHhGgHG
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedulers/order.hpp"
#include "schedulers/parts/chunks.hpp"
#include "schedulers/parts/looped_halves.hpp"
#include "schedulers/parts/looped_turns.hpp"
#include "schedulers/parts/slices_knob.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"

namespace stageline::svpp_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"sequence_chunks", "int", "2", "pieces of a sequence"},
    slices_knob,
    {"chunks", "int", "2", "stages on each device"},
};

Placement place(int devices, const Knobs& knobs) {
  const int chunks = number(knobs, "chunks");
  check_chunks("svpp", "chunks", chunks, devices);
  return looped_placement(devices, chunks);
}

// Sequences of a group: of `groups` equal ones, each with at least as many slices as devices.
int group_of(int sequences, int slices, int devices) {
  const int least = (devices + slices - 1) / slices;
  const auto suits = [&](int count) { return count % std::max(1, count / least) == 0; };
  if (suits(sequences)) return sequences / std::max(1, sequences / least);
  int below = sequences - 1;
  while (!suits(below)) --below;  // one sequence suits
  int above = sequences + 1;
  while (!suits(above)) ++above;
  throw UsageError(
      fmt::format("svpp: {} micro-batches of {} slices on {} devices go in {} groups, which cannot "
                  "have the same size; take {} or {} micro-batches",
                  sequences, slices, devices, sequences / least, below, above));
}

// In the order of backwards: of each sequence from the last slice to the first.
std::vector<LoopedTurn> mirrored(std::vector<LoopedTurn> turns, int slices) {
  for (LoopedTurn& turn : turns) {
    const int slice = turn.microbatch % slices;
    turn.microbatch += slices - 1 - 2 * slice;
  }
  return turns;
}

Program schedule(const Problem& problem) {
  const int slices = number(problem.knobs, "sequence_chunks");
  if (std::int64_t{problem.microbatches} * slices > most_forwards) {
    refuse_forwards(
        fmt::format("{} micro-batches × {} sequence_chunks", problem.microbatches, slices),
        static_cast<double>(problem.microbatches) * slices, "micro-batches or chunks");
  }
  Problem of_slices = problem;
  of_slices.microbatches = problem.microbatches * slices;
  Program program = blank_program(of_slices, "svpp", WeightRule::flush);
  program.settings.sequence_chunks = slices;
  const int devices = static_cast<int>(program.devices.size());
  const int chunks = program.stages() / devices;
  const int group = group_of(problem.microbatches, slices, devices) * slices;
  const std::vector<LoopedTurn> forward = looped_turns(program.microbatches, group, chunks);
  const std::vector<LoopedTurn> back = mirrored(forward, slices);
  put_looped_halves(forward, back, slices - 1 + std::int64_t{chunks - 1} * group, program);
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "svpp",
    "1F1B over chunks of sequences and of the model, I and W apart (order rebuilt)",
    "Sun et al. 2025 (MEPipe), doi 10.1145/3689031.3717469",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
    nullptr,
    "its order is rebuilt from those of interleaved_zb and seq1f1b",
};

}  // namespace stageline::svpp_scheduler
