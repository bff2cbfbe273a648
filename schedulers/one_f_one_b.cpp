// 1F1B with flush (DAPPLE, Fan et al. 2020, arXiv 2007.01045; PipeDream-Flush, Narayanan et al.
// 2020, arXiv 2006.09503): a device p-1-r from the end does that many forwards to warm up, then one
// forward and one backward in turn, then the backwards that are left. It takes as long as GPipe,
// but holds at most p-r micro-batches instead of m.
//
// figure: stages 4, microbatches 8, F 1, I 1, W 1
//   0 |0123      aa4bb5cc6dd7ee ff gg hh
//   1 | 012    aa3bb4cc5dd6ee7ff gg hh
//   2 |  01  aa2bb3cc4dd5ee6ff7gg hh
//   3 |   0aa1bb2cc3dd4ee5ff6gg7hh
#include <algorithm>

#include "schedulers/order.hpp"
#include "schedulers/scheduler.hpp"

namespace stageline::one_f_one_b_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"recompute", "never|always", "never",
     "run the forward again before each backward, and keep only each stage's input"},
};

Placement place(int devices, const Knobs&) { return straight_placement(devices); }

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "1f1b", WeightRule::flush);
  const bool recompute = problem.knobs.at("recompute") == "always";
  const int m = program.microbatches;
  for (int s = 0; s < program.stages(); ++s) {
    const int warm_up = std::min(program.stages() - 1 - s, m);
    Order order(program, s);
    for (int step = 0; step < program.steps; ++step) {
      const auto first = static_cast<std::uint32_t>(step) * static_cast<std::uint32_t>(m);
      for (int i = 0; i < m + warm_up; ++i) {
        if (i < m) order.forward(first + static_cast<std::uint32_t>(i));
        if (i < warm_up) continue;
        const std::uint32_t back = first + static_cast<std::uint32_t>(i - warm_up);
        if (recompute) order.recompute(back);
        order.backward(back);
      }
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "1f1b",
    "warm up, one forward and one backward in turn, flush",
    "Fan et al. 2020 (DAPPLE), arXiv 2007.01045; Narayanan et al. 2020, arXiv 2006.09503",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::one_f_one_b_scheduler
