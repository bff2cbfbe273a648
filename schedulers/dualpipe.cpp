// DualPipe (DeepSeek-AI 2024, DeepSeek-V3 Technical Report, arXiv 2412.19437, and its public
// implementation): two directions at once. Every stage lives on two devices, s and p-1-s; even
// micro-batches enter at the first device and odd ones at the last. Each device runs a forward of
// one direction and a backward of the other as an overlapped pair; weights are held twice, and
// gradients are added up between the two.
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1
//   0 |0241bB36dd 5aaff 7cchheEgG
//   1 | 01234bb5aa6dd7ccffee hgHG
//   2 | 10325aa4bb7cc6ddeeff ghGH
//   3 |1350aA27cc 4bbee 6ddggfFhH
#include <fmt/core.h>

#include "schedulers/parts/chunks.hpp"
#include "schedulers/parts/dual_lanes.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"

namespace stageline::dualpipe_scheduler {
namespace {

Placement place(int devices, const Knobs&) {
  if (devices % 2 != 0) {
    throw UsageError(fmt::format(
        "dualpipe runs in two directions over pairs of devices, so their number must be even (it "
        "is {}); take {}",
        devices,
        devices == 1 ? std::string("2") : fmt::format("{} or {}", devices - 1, devices + 1)));
  }
  return opposite_placement(devices);
}

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "dualpipe", WeightRule::flush);
  const int p = program.stages();
  const int m = program.microbatches;
  if (m % 2 != 0 || m < 2 * p) {
    throw UsageError(fmt::format(
        "dualpipe needs an even number of micro-batches, at least twice the devices: {} on {} "
        "devices do not do; take {}",
        m, p, m < 2 * p ? 2 * p : m + 1));
  }
  for (int step = 0; step < program.steps; ++step) {
    const auto first = static_cast<std::uint32_t>(step * m);
    for (int r = 0; r < p; ++r) {
      const bool far = r >= p / 2;  // the other direction enters nearer
      const int from_end = far ? p - 1 - r : r;
      DualLanes lanes(program, {from_end, first + (far ? 1U : 0U)},
                      {p - 1 - from_end, first + (far ? 0U : 1U)}, 2);
      dual_order(lanes, p / 2, from_end, m / 2 - p + from_end + 1);
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "dualpipe",
    "two directions at once, forward and backward as overlapped pairs",
    "DeepSeek-AI 2024 (DeepSeek-V3), arXiv 2412.19437",
    Synchrony::synchronous,
    {},
    place,
    schedule,
};

}  // namespace stageline::dualpipe_scheduler
