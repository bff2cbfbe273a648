// ZB-H1 (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", arXiv 2401.10241): 1F1B with the
// backward in its two halves. I is done in time, since the device above waits for it; W fills
// what would be bubble, put off so long that every device holds p stashes, as 1F1B's first does.
// For I ≥ F and W ≤ F each device is idle for (p-1)(F+I-W), where 1F1B's are for (p-1)(F+I+W).
//
// figure: stages 4, microbatches 8, F 1, I 1, W 1
//   0 |0123   aA4bB5cC6dD7eEfFgGhH
//   1 | 012  a3bA4cB5dC6eD7fEgFhGH
//   2 |  01 a2b3cA4dB5eC6fD7gEhFGH
//   3 |   0a1b2c3dA4eB5fC6gD7hEFGH
#include <algorithm>
#include <vector>

#include "schedulers/order.hpp"
#include "schedulers/parts/stages_behind.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"

namespace stageline::zb_h1_scheduler {
namespace {

Placement place(int devices, const Knobs&) { return straight_placement(devices); }

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "zb_h1", WeightRule::flush);
  const int m = program.microbatches;
  const std::vector<int> behind = stages_behind(program.edges, program.stages());
  const int deepest = *std::max_element(behind.begin(), behind.end());
  for (int s = 0; s < program.stages(); ++s) {
    const int warm_up = std::min(nth(behind, s), m);
    Order order(program, s);
    for (int step = 0; step < program.steps; ++step) {
      const auto first = static_cast<std::uint32_t>(step) * static_cast<std::uint32_t>(m);
      const auto at = [&](int i) { return first + static_cast<std::uint32_t>(i); };
      int weights = 0;
      for (int i = 0; i < m + warm_up; ++i) {
        if (i < m) order.forward(at(i));
        if (i < warm_up) continue;
        const int back = i - warm_up;
        order.input_grad(at(back));
        // In a chain W is s micro-batches behind I; once the forwards are over they take turns.
        if (back >= deepest - nth(behind, s)) order.weight_grad(at(weights++));
      }
      while (weights < m) order.weight_grad(at(weights++));
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "zb_h1",
    "1F1B with I and W apart: W fills bubbles, at 1F1B's memory",
    "Qi et al. 2023, arXiv 2401.10241 (ZB-H1)",
    Synchrony::synchronous,
    {},
    place,
    schedule,
};

}  // namespace stageline::zb_h1_scheduler
