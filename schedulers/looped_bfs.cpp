// Breadth-first pipeline parallelism (Lamy-Poirier 2022, arXiv 2211.05953): every device has v
// chunks of the model, stage k on device k mod p. All micro-batches go through a device's first
// chunk, then all through its second, and so on; the backwards take the chunks the other way round,
// the micro-batches in the order of the forwards (or reversed, as PyTorch's ScheduleLoopedBFS and
// torchtitan take them). GPipe by chunk: with m ≥ p its bubble over v, and all mv chunks held.
//
// Where a digit comes back on a device, it is the micro-batch's next chunk.
//
// figure: devices 4, microbatches 4, F 1, I 1, W 1
//   0 |01230123         aabbccddaabbccdd
//   1 | 01230123      aabbccddaabbccdd
//   2 |  01230123   aabbccddaabbccdd
//   3 |   01230123aabbccddaabbccdd
//
// figure: devices 4, microbatches 4, F 1, I 1, W 1, reverse yes
//   0 |01230123         ddccbbaaddccbbaa
//   1 | 01230123      ddccbbaaddccbbaa
//   2 |  01230123   ddccbbaaddccbbaa
//   3 |   01230123ddccbbaaddccbbaa
#include "schedulers/order.hpp"
#include "schedulers/parts/chunks.hpp"
#include "schedulers/scheduler.hpp"

namespace stageline::looped_bfs_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"chunks", "int", "2", "stages on each device"},
    {"reverse", "no|yes", "no", "backwards of a chunk from the last micro-batch to the first"},
};

Placement place(int devices, const Knobs& knobs) {
  const int chunks = number(knobs, "chunks");
  check_chunks("looped_bfs", "chunks", chunks, devices);
  return looped_placement(devices, chunks);
}

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "looped_bfs", WeightRule::flush);
  const bool reverse = problem.knobs.at("reverse") == "yes";
  const auto size = static_cast<std::uint32_t>(program.microbatches);
  for (int step = 0; step < program.steps; ++step) {
    const std::uint32_t first = static_cast<std::uint32_t>(step) * size;
    for (int s = 0; s < program.stages(); ++s) {
      for (std::uint32_t i = 0; i < size; ++i) Order(program, s).forward(first + i);
    }
    for (int s = program.stages() - 1; s >= 0; --s) {
      for (std::uint32_t i = 0; i < size; ++i) {
        Order(program, s).backward(first + (reverse ? size - 1 - i : i));
      }
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "looped_bfs",
    "several chunks a device, all micro-batches through one before the next",
    "Lamy-Poirier 2022, arXiv 2211.05953",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::looped_bfs_scheduler
