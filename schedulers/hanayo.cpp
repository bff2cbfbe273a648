// Hanayo (Liu et al., SC 2023, arXiv 2308.15762): w waves. Every device has 2w chunks of the model,
// and a micro-batch goes down the devices and up again w times, with no message where it turns.
// What is known of the paper describes steps of m = p micro-batches. Their order is rebuilt from
// the wave's rule, run forward with all chunks equal: a backward as soon as one is due, else the
// forward that is furthest along. A device holds 2w chunks of min(m, p) micro-batches. It is idle
// for 2(p-1) chunks, however many waves, which make them shorter: where F = B for any m that p
// divides, (p-1)/(2wm+p-1) of the step. Where B > F it is idle for 2(p-1)B with m = p, and for
// about 2(p-1)(B-F) more for each further p micro-batches.
//
// With m > p a second order is therefore tried on the costs, and taken where the step is shorter:
// that of a building block for B = 2F (schedulers/parts/first_fit_block.hpp) that holds no more
// chunks. With one wave it is then idle for about as long as with m = p, however many
// micro-batches; with more waves the block may hold too many, or win in long steps alone.
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
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1
//   0 |01234560aa1bb2cc3dd7  aa  4eebb 5ffcc 6ggdd 7hhee  ff  gg  hh
//   1 | 01234051 aa2bb3cc6 aadd74bb ee5cc ff6dd gg7ee hhff  gg  hh
//   2 |  012031 2 3aa4bb5aaccbb4dd6cc5ee7dd6ff ee7gg ff hhgg  hh
//   3 |   00112233   aaaabbbb44cccc55dddd66eeee77ffffgggg hhhh
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "schedulers/parts/backward_first.hpp"
#include "schedulers/parts/chunks.hpp"
#include "schedulers/parts/first_fit_block.hpp"
#include "schedulers/parts/list_schedule.hpp"
#include "schedulers/parts/priorities.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"

namespace stageline::hanayo_scheduler {
namespace {

using Orders = std::vector<std::vector<Op>>;  // of one step, by device

constexpr Knob knobs[] = {
    {"waves", "int", "1", "times down and up the devices; each is two stages a device"},
};

Placement place(int devices, const Knobs& knobs) {
  const int waves = number(knobs, "waves");
  check_chunks("hanayo", "waves", waves, devices, 2);
  return zigzag_placement(devices, 2 * waves);
}

Orders wave_order(const std::vector<int>& device, int devices, int microbatches) {
  const auto turns =
      backward_first({Flow{device, microbatches}}, devices, 1, std::numeric_limits<int>::max());
  Orders orders(turns.size());
  for (std::size_t d = 0; d < turns.size(); ++d) {
    for (const FlowTurn turn : turns[d]) {
      orders[d].push_back(
          op_of(turn.kind, turn.stage, static_cast<std::uint32_t>(turn.microbatch)));
    }
  }
  return orders;
}

Time step_time(const Problem& problem, const Orders& orders) {
  ListRules rules;
  rules.split = false;
  rules.rank = backward_first();
  rules.plan = orders;
  return list_schedule(problem, rules, {}).makespan;
}

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "hanayo", WeightRule::flush);
  std::vector<int> device;
  for (const StagePlace& place : program.placement.stage) device.push_back(place.replicas[0]);
  const int devices = static_cast<int>(program.devices.size());
  Orders orders = wave_order(device, devices, program.microbatches);
  if (program.microbatches > devices) {
    std::optional<Orders> block =
        unroll(first_fit_block(device, devices), program.microbatches, program.stages());
    if (block && step_time(problem, *block) < step_time(problem, orders)) {
      orders = std::move(*block);
    }
  }
  return freeze(std::move(program), orders);
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "hanayo",
    "waves down and up the devices, with no message where they turn (order rebuilt)",
    "Liu et al., Hanayo, SC 2023, arXiv 2308.15762",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
    nullptr,
    "its order is rebuilt from the rule of the waves, or from a block that repeats where that is "
    "faster",
};

}  // namespace stageline::hanayo_scheduler
