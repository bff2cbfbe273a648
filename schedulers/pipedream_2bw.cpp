// PipeDream-2BW (Narayanan et al. 2020, arXiv 2006.09503): 1F1B that never empties. A device p-1-r
// from the end does that many forwards to warm up, once; then it runs one forward and one backward
// in turn, an update behind every m backwards, and forwards run on into the next step. A step reads
// the weights that the step but one before left, so two versions are enough: those the backwards
// of this step still read, and those for the forwards of the next.
//
// figure: stages 4, microbatches 4, steps 3, F 1, I 1, W 1
//   0 |0123      aa4bb5cc6dd7ee8ff9gg0hh1ii jj kk ll
//   1 | 012    aa3bb4cc5dd6ee7ff8gg9hh0ii1jj kk ll
//   2 |  01  aa2bb3cc4dd5ee6ff7gg8hh9ii0jj1kk ll
//   3 |   0aa1bb2cc3dd4ee5ff6gg7hh8ii9jj0kk1ll
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedulers/order.hpp"
#include "schedulers/parts/stages_behind.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::pipedream_2bw_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"recompute", "never|always", "never",
     "run the forward again before each backward, and keep only each stage's input"},
};

Placement place(int devices, const Knobs&) { return straight_placement(devices); }

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "pipedream_2bw", WeightRule::double_buffer);
  if (program.microbatches < program.stages()) {
    throw UsageError(
        fmt::format("pipedream_2bw needs at least as many micro-batches a step as stages, for one "
                    "update to suffice between them (micro-batches: {}, stages: {})",
                    program.microbatches, program.stages()));
  }
  const bool recompute = problem.knobs.at("recompute") == "always";
  const std::uint32_t total = program.total_microbatches();
  const std::vector<int> behind = stages_behind(program.edges, program.stages());
  for (int s = 0; s < program.stages(); ++s) {
    const auto warm_up = std::min(static_cast<std::uint32_t>(nth(behind, s)), total);
    Order order(program, s);
    for (std::uint32_t i = 0; i < total + warm_up; ++i) {
      if (i < total) order.forward(i);
      if (i < warm_up) continue;
      if (recompute) order.recompute(i - warm_up);
      order.backward(i - warm_up);
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "pipedream_2bw",
    "1F1B that never empties, an update a step, two versions of the weights",
    "Narayanan et al. 2020, arXiv 2006.09503",
    Synchrony::asynchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::pipedream_2bw_scheduler
