// GEMS (Jain et al., SC 2020): two replicas of the model in opposite directions. Even micro-batches
// go down the devices and come back, odd ones go up, and a micro-batch follows the backward of the
// one before through the devices: two are under way at most, and a device holds one stash, for
// twice the weights. With B = 2F the bubble of a long step is (p-1)/(p+1/2), as Chimera's paper
// gives it. The rule is rebuilt from that.
//
// figure: devices 4, microbatches 4, F 1, I 1, W 1
//   0 |0         aa1bb2            cc3dd
//   1 | 0      aa1    bb2        cc3    dd
//   2 |  0   aa1        bb2    cc3        dd
//   3 |   0aa1            bb2cc3            dd
#include "schedulers/order.hpp"
#include "schedulers/parts/chunks.hpp"
#include "schedulers/scheduler.hpp"

namespace stageline::gems_scheduler {
namespace {

Placement place(int devices, const Knobs&) { return opposite_placement(devices); }

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "gems", WeightRule::flush);
  const auto size = static_cast<std::uint32_t>(program.microbatches);
  for (int step = 0; step < program.steps; ++step) {
    const std::uint32_t first = static_cast<std::uint32_t>(step) * size;
    for (std::uint32_t m = first; m < first + size; ++m) {
      for (int s = 0; s < program.stages(); ++s) Order(program, s).forward(m).backward(m);
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "gems",
    "two replicas in opposite directions, two micro-batches under way (rebuilt)",
    "Jain et al., GEMS, SC 2020",
    Synchrony::synchronous,
    {},
    place,
    schedule,
    nullptr,
    "its rule is rebuilt from how other papers describe it",
};

}  // namespace stageline::gems_scheduler
