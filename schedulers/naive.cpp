// Naive model parallelism: one micro-batch at a time goes down the stages and back, while all other
// devices wait. The baseline that everything else is measured against.
//
// figure: stages 4, microbatches 2, F 1, I 1, W 1
//   0 |0         aa1         bb
//   1 | 0      aa   1      bb
//   2 |  0   aa      1   bb
//   3 |   0aa         1bb
#include "schedulers/order.hpp"
#include "schedulers/scheduler.hpp"

namespace stageline::naive_scheduler {
namespace {

Placement place(int devices, const Knobs&) { return straight_placement(devices); }

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "naive", WeightRule::flush);
  for (int s = 0; s < program.stages(); ++s) {
    Order order(program, s);
    for (std::uint32_t m = 0; m < program.total_microbatches(); ++m) order.forward(m).backward(m);
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "naive",
    "one micro-batch at a time through all stages",
    "model parallelism without pipelining, the baseline of arXiv 1811.06965",
    Synchrony::synchronous,
    {},
    place,
    schedule,
};

}  // namespace stageline::naive_scheduler
