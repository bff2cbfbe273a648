// ZB-H2 (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", arXiv 2401.10241): more forwards
// before the first backward, 2(p-r)-1 on device r, so that a device is busy until its first I can
// run; and W put off until 2p-1 stashes are held, as in the paper (the authors' scheduler, which
// zb_auto:limit=2p is the counterpart of, takes 2p). With W ≤ F ≤ I the idle time inside a device's
// span is max(0, (p-1)(F+I-2W)): nothing where F = I = W. Devices start and end after one
// another; steps that follow each other close the gaps, since none waits for all others.
//
// figure: stages 4, microbatches 8, F 1, I 1, W 1
//   0 |0123456aA7bBcCdDeEfFgGhH
//   1 | 01234a5b6cA7dBeCfDgEhFGH
//   2 |  012a3b4c5d6eA7fBgChDEFGH
//   3 |   0a1b2c3d4e5f6gA7hBCDEFGH
#include <algorithm>
#include <vector>

#include "schedulers/order.hpp"
#include "schedulers/parts/stages_behind.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"

namespace stageline::zb_h2_scheduler {
namespace {

Placement place(int devices, const Knobs&) { return straight_placement(devices); }

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "zb_h2", WeightRule::flush);
  const int m = program.microbatches;
  const std::vector<int> behind = stages_behind(program.edges, program.stages());
  const int deepest = *std::max_element(behind.begin(), behind.end());
  for (int s = 0; s < program.stages(); ++s) {
    const int warm_up = std::min(2 * nth(behind, s), m);
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
        // In a chain W is 2s micro-batches behind I.
        if (back >= 2 * (deepest - nth(behind, s))) order.weight_grad(at(weights++));
      }
      while (weights < m) order.weight_grad(at(weights++));
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "zb_h2",
    "more forwards ahead and W put off: no bubble, at 2p-1 stashes where 1F1B has p",
    "Qi et al. 2023, arXiv 2401.10241 (ZB-H2)",
    Synchrony::synchronous,
    {},
    place,
    schedule,
};

}  // namespace stageline::zb_h2_scheduler
