// 1F1B-V (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", arXiv 2405.15362): two
// chunks a device in a V, as in V-Half, but whole backwards, as in 1F1B. In a V every device has
// one chunk that is held for long and one that is not: each holds ceil((2p+1)/3) shares (of two
// chunks), where 1F1B's first device holds p. The order comes from a block of slots
// (schedulers/parts/unrolled_block.hpp), as in the authors' scheduler: a forward takes one slot, a
// backward two, and after every third backward three slots stay empty, so that the ops of a device
// differ modulo 6. With B = 2F a device is idle for at most 5(p-1) forwards of a chunk, however
// many micro-batches, where 1F1B's are for 6(p-1). Where B is not 2F it idles more as m grows.
//
// Where a digit comes back on a device, it is the micro-batch's second chunk.
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1
//   0 |01234  0aa1bb2cc      3ddaa54eebb65ffcc76ggdd 7hhee  ff  gg  hh
//   1 | 0123 0 1 aa2bb4cc   3aa dd45bbee56ccff67ddgg7ee hhff  gg  hh
//   2 |  0120 1 2  aa3bb4aa3cc bb4dd5cc5ee6dd6ff7ee7gg ff hhgg  hh
//   3 |   001122     aaaa33bbbb44cccc55dddd66eeee77ffffgggg hhhh
#include <algorithm>
#include <utility>

#include "schedulers/parts/building_block.hpp"
#include "schedulers/parts/unrolled_block.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"

namespace stageline::one_f_one_b_v_scheduler {
namespace {

Placement place(int devices, const Knobs&) { return v_placement("1f1b_v", devices); }

RepeatedBlock block_of(int devices) {
  const int stages = 2 * devices;
  RepeatedBlock block;
  block.period = 6;
  block.backward.resize(as_size(stages));
  for (int s = 0; s < stages; ++s) {
    block.device.push_back(std::min(s, stages - 1 - s));
    block.forward.push_back(s);
  }
  // The first device's F and f are 2p-1 slots apart: where 3 divides p, B would take F's slot.
  int slot = stages + (devices % 3 == 0 ? 3 : 0);
  int until_wait = (devices + 2) % 3;  // backwards until slots stay empty
  if (until_wait == 0) until_wait = 3;
  for (int s = stages - 1; s >= 0; --s) {
    nth(block.backward, s) = slot;
    slot += 2;
    if (--until_wait > 0) continue;
    until_wait = 3;
    slot += 3;
  }
  return block;
}

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "1f1b_v", WeightRule::flush);
  const int devices = problem.placement.stages() / 2;
  return freeze(std::move(program), *unroll(block_of(devices), problem.microbatches));
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "1f1b_v",
    "1F1B on two chunks a device in a V, at two thirds of its activations",
    "Qi et al. 2024, arXiv 2405.15362 (1F1B-V)",
    Synchrony::synchronous,
    {},
    place,
    schedule,
};

}  // namespace stageline::one_f_one_b_v_scheduler
