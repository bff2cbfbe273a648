// Stale-weight pipelined backpropagation (Zhang & Abdelrahman 2021, doi 10.1155/2021/3839543; arXiv
// 1912.12675). K pairs of pipeline registers cut the network into K+1 forward stages FS_1.. and K+1
// backward stages BKS_1..; FS_i and BKS_{K-i+2} hold the same layers. Mini-batches stream without
// flush and without stashed weights: each backward is followed by its update, and everybody reads
// the weights that are there, so that stage s (from 0, of S = K+1) computes with weights 2(S-1-s)
// updates old. FS_{K+1} and BKS_1 share an accelerator and every other stage has its own, 2K+1 in
// all. The two-accelerator mapping of the paper's experiments (K = 1) is mapping=paired, where each
// accelerator does FS_i and the BKS of the same layers in turns; for K > 1 that is our extension of
// it.
//
// The registers are flow control: without them a fast stage would run ahead and its weights grow
// stale without end. With d = 2(S-1-s), F(m) waits for update m-d-1, and update m for F(m+d) to
// have read its weights (ProgramSettings::delay). Free-running or in lockstep, the weights are
// equally old.
//
// figure: devices 3, microbatches 6, F 1, I 1, W 1
//   0 |012   3  4  5
//   1 | 0aa1bb2cc3dd4ee5ff
//   2 |    aa bb cc dd ee ff
//
// figure: devices 3, clock lockstep, microbatches 5, F 1, I 1, W 1
//   0 |01  2  3  4
//   1 | 0aa1bb2cc3dd4ee
//   2 |    aa bb cc dd ee
//
// figure: devices 2, mapping paired, microbatches 5, F 2, I 1, W 1
//   0 |001122aa33bb44cc  dd  ee
//   1 |  00aa11bb22cc33dd44ee
#include "schedulers/order.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"

namespace stageline::stale_weights_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"mapping", "apart|paired", "apart",
     "2K+1 accelerators for K+1 stages; or one a stage, forward and backward in turns"},
    {"order", "forward_first|backward_first", "forward_first",
     "with mapping=paired, what an accelerator does first when both are due"},
    {"clock", "free|lockstep", "free",
     "lockstep: every cycle lasts as long as its busiest accelerator"},
    {"weights_transfer", "on|off", "on",
     "off: updated weights reach the forward's accelerator at once, as the paper has it"},
};

// A device that is left over (an even number of them, apart) stays idle.
Placement place(int devices, const Knobs& knobs) {
  if (knobs.at("mapping") == "paired") return straight_placement(devices);
  const int last = (devices - 1) / 2;
  Placement placement = straight_placement(last + 1);
  for (int s = 0; s < last; ++s) {
    StagePlace& stage = nth(placement.stage, s);
    stage.input_grad = stage.weight_grad = {2 * last - s};
  }
  return placement;
}

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "stale_weights", WeightRule::latest);
  const bool paired = problem.knobs.at("mapping") == "paired";
  const bool backward_first = paired && problem.knobs.at("order") == "backward_first";
  program.settings.clock = problem.knobs.at("clock") == "lockstep" ? Clock::lockstep : Clock::free;
  program.settings.weights_transfer = problem.knobs.at("weights_transfer") == "on";
  const std::int64_t total = program.total_microbatches();
  const std::int64_t last = program.stages() - 1;
  for (int s = 0; s <= last; ++s) {
    const std::int64_t behind = 2 * (last - s);
    // The last stage's forward makes what its backward of the same cycle reads.
    const bool swapped = backward_first && s < last;
    program.settings.delay.push_back(static_cast<int>(swapped ? behind - 1 : behind));
    Order order(program, s);
    for (std::int64_t cycle = 0; cycle < total + behind; ++cycle) {
      const std::int64_t due = cycle - behind;
      if (swapped && due >= 0) order.backward(static_cast<std::uint32_t>(due));
      if (cycle < total) order.forward(static_cast<std::uint32_t>(cycle));
      if (!swapped && due >= 0) order.backward(static_cast<std::uint32_t>(due));
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "stale_weights",
    "no flush, no stash: every stage reads the weights that are there",
    "Zhang & Abdelrahman 2021, doi 10.1155/2021/3839543, arXiv 1912.12675",
    Synchrony::asynchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::stale_weights_scheduler
