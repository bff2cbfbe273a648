// One round, the same for every micro-batch: of each device F, I and W of its stages once, in the
// best order found for these costs under a limit of stashes or bytes
// (schedulers/search/cyclic_order.hpp). What decides over long steps is the period of the round;
// `stageline bound` names it beside the shortest that the limit allows. At both ends of a step
// rounds miss the ops of micro-batches that are not there.
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1
//   0 |0123   aA4bB5cC6dD7eEfFgGhH
//   1 | 012  a3bA4cB5dC6eD7fEgFhGH
//   2 |  01 a2b3cA4dB5eC6fD7gEhFGH
//   3 |   0a1b2c3dA4eB5fC6gD7hEFGH
//
// figure: devices 4, microbatches 6, F 1, I 1, W 1, placement v
//   0 |01     0aA2  1baBA32cbCB43dcDC54edED 5feFE   fF
//   1 | 0    01 aA 12abBA23bcCB34cdDC45deED5 efFE  fF
//   2 |  0  0  1 a1Aa2Ab2Bb3Bc3Cc4Cd4Dd5De5EeE fF fF
//   3 |   00    11aaAA22bbBB33ccCC44ddDD55eeEE  ffFF
//
// figure: stages 4, microbatches 8, F 2, I 3, W 1, limit 3
//   0 |001122           aaaA33bbbB44cccC55     dddD66eeeE77fffF      gggG hhhH
//   1 |  001122      aaaA  bbbB33cccC44   55dddD eeeE66fffF77     gggG hhhH
//   2 |    0011   aaa22 bbbAB ccc33C   44ddd55eeeDE fff66F   77ggg  hhhGH
//   3 |      00aaaA11bbbB22cccC    33dddD44eeeE55fffF    66gggG77hhhH
#include "schedulers/parts/placement_knobs.hpp"
#include "schedulers/parts/stash_limit.hpp"
#include "schedulers/scheduler.hpp"
#include "schedulers/search/cyclic_order.hpp"

namespace stageline::cyclic_scheduler {
namespace {

constexpr Knob knobs[] = {
    limit_knob("p"),
    placement_knob,
    chunks_knob,
};

Placement place(int devices, const Knobs& knobs) {
  read_limit("cyclic", knobs.at("limit"), devices);
  return placement_by_knobs("cyclic", knobs, devices);
}

Program schedule(const Problem& problem) {
  const LimitChoice choice =
      read_limit("cyclic", problem.knobs.at("limit"), static_cast<int>(problem.devices.size()));
  const Program blank = blank_program(problem, "cyclic", WeightRule::flush);
  return under_limit(problem, choice, true, Goal::span, [&](const StashLimit& limit) {
    return freeze(blank, unrolled(cyclic_order(problem, limit).round, problem.microbatches));
  });
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "cyclic",
    "one round for every micro-batch, in the order of the shortest period found",
    "Hanen & Munier 1995, doi 10.1016/0166-218X(94)00112-K; modulo scheduling, Rau 1994, "
    "doi 10.1145/192724.192731",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::cyclic_scheduler
