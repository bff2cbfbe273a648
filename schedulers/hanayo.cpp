// Hanayo (Liu et al., SC 2023, arXiv 2308.15762): w waves. Every device has 2w chunks of the model,
// and a micro-batch goes down the devices and up again w times, with no message where it turns. The
// order is the wave's rule, run forward with all chunks equal: a backward as soon as one is due,
// else the forward that is furthest along (rebuilt). With F = B, and m a multiple of p, a device is
// idle for 2(p-1) chunks, however many waves, which make them shorter: (p-1)/(2wm+p-1) of the step.
// It holds 2w chunks of min(m, p) micro-batches.
//
// Where a digit comes back on a device, it is the micro-batch's next chunk.
//
// figure: devices 4, microbatches 4, F 1, I 1, W 0
//   0 |0123   0a1b2c3da b c d
//   1 | 0123 0 1a2b3cadb c d
//   2 |  012031 2a3bacbdc d
//   3 |   00112233aabbccdd
//
// figure: devices 4, waves 2, microbatches 4, F 1, I 1, W 0
//   0 |0123   001122330a1b2c3daabbccdda b c d
//   1 | 0123 0 102132031a2b3cadbacbdcadb c d
//   2 |  012031 203102132a3bacbdcadbacbdc d
//   3 |   0011223300112233aabbccddaabbccdd
#include <limits>

#include "schedulers/parts/backward_first.hpp"
#include "schedulers/parts/chunks.hpp"
#include "schedulers/scheduler.hpp"

namespace stageline {
namespace {

constexpr Knob knobs[] = {
    {"waves", "int", "1", "times down and up the devices; each is two stages a device"},
};

Placement place(int devices, const Knobs& knobs) {
  const int waves = number(knobs, "waves");
  check_chunks("hanayo", "waves", waves, devices, 2);
  return zigzag_placement(devices, 2 * waves);
}

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "hanayo", WeightRule::flush);
  Flow flow{{}, program.microbatches};
  for (const StagePlace& place : program.placement.stage) flow.device.push_back(place.replicas[0]);
  const auto orders = backward_first({flow}, static_cast<int>(program.devices.size()), 1,
                                     std::numeric_limits<int>::max());
  for (int step = 0; step < program.steps; ++step) {
    append(program, orders, step);
  }
  return program;
}

}  // namespace

extern const Scheduler hanayo_scheduler;
const Scheduler hanayo_scheduler = {
    "hanayo",
    "waves down and up the devices, with no message where they turn (order rebuilt)",
    "Liu et al., Hanayo, SC 2023, arXiv 2308.15762",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
    nullptr,
    "its order is rebuilt from the rule of the waves",
};

}  // namespace stageline
