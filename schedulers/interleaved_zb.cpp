// Interleaved zero-bubble (PyTorch's ScheduleInterleavedZeroBubble: ZB-H1 of Qi et al. 2023, arXiv
// 2401.10241, over the chunks of Narayanan et al. 2021, arXiv 2104.04473): every device has v
// chunks of the model, stage k on device k mod p, and micro-batches go through them in groups, as
// in interleaved 1F1B. I and W are apart, so that a shorter warm-up is enough: (p-1-r) +
// (v-1)·group forwards, then one forward and one I in turn. W is r backwards behind I, so that
// every device holds p + (v-1)·group chunks. For I ≥ F, W ≤ F and m ≥ p each device is idle for
// (p-1)(F+I-W) of a chunk: the bubble of ZB-H1 over v.
//
// A step has floor(m/p) groups of the same size, or one where m < p.
//
// With group=, the order is that of grouped interleaving (schedulers/parts/grouped_order.hpp): W is
// right behind its I, and groups of half as many micro-batches as devices are enough. With groups
// of p/2 to p a device holds p + (v-1)·group chunks: at p/2 half of interleaved 1F1B's, in about
// its time. Smaller groups hold about as much, and suit steps of few micro-batches.
//
// Where a digit comes back on a device, it is the micro-batch's next chunk.
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1
//   0 |01230123   aA4bB5cC6dD7aA4bB5cC6dD7eEfFgGhHeEfFgGhH
//   1 | 0123012  a3bA4cB5dC6aD7bA4cB5dC6eD7fEgFhGeHfEgFhGH
//   2 |  012301 a2b3cA4dB5aC6bD7cA4dB5eC6fD7gEhFeGfHgEhFGH
//   3 |   01230a1b2c3dA4aB5bC6cD7dA4eB5fC6gD7hEeFfGgHhEFGH
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1, group 2
//   0 |01  0123   aA 2bB3aA4bB5cC4dD5cC6dD7eE6fF7eEfF gG hHgGhH
//   1 | 01  012  aA3bB2aA3bB4cC5dD4cC5dD6eE7fF6eE7fF gG hHgGhH
//   2 |  01  01 aA2bB3aA2bB3cC4dD5cC4dD5eE6fF7eE6fF7gG hHgGhH
//   3 |   01  0aA1bB2aA3bB2cC3dD4cC5dD4eE5fF6eE7fF6gG7hHgGhH
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schedulers/order.hpp"
#include "schedulers/parts/chunks.hpp"
#include "schedulers/parts/grouped_order.hpp"
#include "schedulers/parts/looped_halves.hpp"
#include "schedulers/parts/looped_turns.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"

namespace stageline::interleaved_zb_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"chunks", "int", "2", "stages on each device"},
    {"group", "int", "auto",
     "micro-batches that go through a chunk before the next chunk's turn, W right behind I; auto: "
     "PyTorch's rule"},
};

Placement place(int devices, const Knobs& knobs) {
  const int chunks = number(knobs, "chunks");
  check_chunks("interleaved_zb", "chunks", chunks, devices);
  return looped_placement(devices, chunks);
}

int groups_of(int microbatches, int devices) { return std::max(1, microbatches / devices); }

int group_of(const Problem& problem) {
  const int devices = static_cast<int>(problem.devices.size());
  const int m = problem.microbatches;
  const int groups = groups_of(m, devices);
  const auto suits = [&](int count) { return count % groups_of(count, devices) == 0; };
  if (suits(m)) return m / groups;
  int below = m - 1;
  while (!suits(below)) --below;  // one micro-batch suits
  int above = m + 1;
  while (!suits(above)) ++above;
  throw UsageError(
      fmt::format("interleaved_zb: {} micro-batches on {} devices go in {} groups, which cannot "
                  "have the same size; take {} or {}",
                  m, devices, groups, below, above));
}

Program schedule(const Problem& problem) {
  if (problem.knobs.at("group") != "auto") {
    const int each = std::min(number(problem.knobs, "group"), problem.microbatches);
    const Grouping grouping = grouping_of(static_cast<int>(problem.devices.size()), each);
    return freeze(blank_program(problem, "interleaved_zb", WeightRule::flush),
                  grouped_order(problem, grouping, true));
  }
  const int group = group_of(problem);
  Program program = blank_program(problem, "interleaved_zb", WeightRule::flush);
  const int devices = static_cast<int>(program.devices.size());
  const int chunks = program.stages() / devices;
  const std::vector<LoopedTurn> turn = looped_turns(program.microbatches, group, chunks);
  put_looped_halves(turn, turn, std::int64_t{chunks - 1} * group, program);
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "interleaved_zb",
    "ZB-H1 with several chunks a device, which divide its bubble",
    "PyTorch's ScheduleInterleavedZeroBubble; after Qi et al. 2023, arXiv 2401.10241; group= of Wan "
    "et al. 2025, arXiv 2503.01328",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::interleaved_zb_scheduler
