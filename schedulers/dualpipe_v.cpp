// DualPipeV (Sea AI Lab 2025, "cut in half" of DualPipe; DeepSeek's public implementation):
// DualPipe on half the devices. The pipe is folded into a V, stage s and stage 2p-1-s live on one
// device, so weights are held once; what goes down the V and what comes up take the place of the
// two directions.
//
// figure: devices 3, microbatches 6, F 1, I 1, W 1
//   0 |012340aA1bB25cc  3aadd 4bbee 5ccffdDeEfF
//   1 | 012031aA24bb 3aa5cc4bbdd 5cceedd feFfEF
//   2 |  0011223aa3aa4bb4bb5cc5ccdddd eee ffEFF
#include <fmt/core.h>

#include "schedulers/parts/chunks.hpp"
#include "schedulers/parts/dual_lanes.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"

namespace stageline::dualpipe_v_scheduler {
namespace {

Placement place(int devices, const Knobs&) { return zigzag_placement(devices, 2); }

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "dualpipe_v", WeightRule::flush);
  const int p = program.stages() / 2;
  const int m = program.microbatches;
  if (m < 2 * p) {
    throw UsageError(fmt::format(
        "dualpipe_v needs at least twice as many micro-batches as devices: {} on {} devices do not "
        "do; take {}",
        m, p, 2 * p));
  }
  for (int step = 0; step < program.steps; ++step) {
    const auto first = static_cast<std::uint32_t>(step * m);
    for (int r = 0; r < p; ++r) {
      DualLanes lanes(program, {r, first}, {2 * p - 1 - r, first}, 1);
      dual_order(lanes, p, r, m - 2 * p + r + 1);
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "dualpipe_v",
    "DualPipe folded into a V, two stages a device, weights held once",
    "Sea AI Lab 2025 and DeepSeek-AI 2025 (DualPipe repository); DeepSeek-V3, arXiv 2412.19437",
    Synchrony::synchronous,
    {},
    place,
    schedule,
};

}  // namespace stageline::dualpipe_v_scheduler
