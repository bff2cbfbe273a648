// Seq1F1B (Sun et al. 2024, arXiv 2406.03488): 1F1B over pieces of sequences. A sequence is cut
// into chunks that pass the pipeline one behind the other. Attention looks back, so forwards go
// from the first chunk to the last and backwards from the last to the first; a device warms up with
// the chunks of a sequence beside those of 1F1B. Bubbles are as long as a chunk's passes, and
// stashes are those of chunks. Chunks of as many tokens hold equal bytes, and later ones take
// longer, for they look further back; balanced ones (the paper's computation-wise cut) take equal
// times, and later ones are shorter. What a chunk takes: cost_models/README.md.
//
// figure: stages 4, microbatches 3, sequence_chunks 2, F 1, I 1, W 1
//   0 |01234      bb5aa dd cc ffee
//   1 | 0123    bb4aa5dd cc ffee
//   2 |  012  bb3aa4dd5cc ffee
//   3 |   01bb2aa3dd4cc5ffee
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedulers/order.hpp"
#include "schedulers/parts/slices_knob.hpp"
#include "schedulers/parts/stages_behind.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::seq1f1b_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"sequence_chunks", "int", "2", "pieces of a sequence"},
    slices_knob,
};

Placement place(int devices, const Knobs&) { return straight_placement(devices); }

Program schedule(const Problem& problem) {
  const int chunks = std::stoi(problem.knobs.at("sequence_chunks"));
  if (std::int64_t{problem.microbatches} * chunks > most_forwards) {
    refuse_forwards(
        fmt::format("{} micro-batches × {} sequence_chunks", problem.microbatches, chunks),
        static_cast<double>(problem.microbatches) * chunks, "micro-batches or chunks");
  }
  Problem of_chunks = problem;
  of_chunks.microbatches = problem.microbatches * chunks;
  Program program = blank_program(of_chunks, "seq1f1b", WeightRule::flush);
  program.settings.sequence_chunks = chunks;
  const int m = program.microbatches;
  const std::vector<int> behind = stages_behind(program.edges, program.stages());
  for (int s = 0; s < program.stages(); ++s) {
    const int warm_up = std::min(nth(behind, s) + chunks - 1, m);
    Order order(program, s);
    for (int step = 0; step < program.steps; ++step) {
      const int first = step * m;
      for (int i = 0; i < m + warm_up; ++i) {
        if (i < m) order.forward(static_cast<std::uint32_t>(first + i));
        if (i < warm_up) continue;
        const int at = i - warm_up;
        const int last_of_sequence = at / chunks * chunks + chunks - 1;
        order.backward(static_cast<std::uint32_t>(first + last_of_sequence - at % chunks));
      }
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "seq1f1b",
    "1F1B over chunks of sequences, backward from the last chunk to the first",
    "Sun et al. 2024, arXiv 2406.03488",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::seq1f1b_scheduler
