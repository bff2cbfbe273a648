// ZB-V (Qi et al. 2024, arXiv 2405.15362; Qi et al. 2023, arXiv 2401.10241): two chunks a device in
// a V, so that the last stage is where the first is and the first I can follow the last F at once.
// No bubble inside a device's span for F = I = W, with 2p chunks on a device: p shares, as 1F1B's
// first device holds. A chunk counts until its W has ended. W fills what F and I leave,
// unless for the costs at hand another order is found that is shorter
// (schedulers/search/v_search.hpp).
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1
//   0 |01234560aA1bB2cC3daD7A4ebEB5fcFC6gdGD7heHfEgFhGH
//   1 | 01234051aA2bB3caC6A4dbD7B5ecEC6fdFD7gehfGgEhHFGH
//   2 |  01203142aA3baB5A4cbC6B5dcD7C6edED7fegfhgFhEGFHGH
//   3 |   00112233aaA4A4bbB5B5ccC6C6ddD7D7eeffgghhEEFFGGHH
#include "schedulers/parts/building_block.hpp"
#include "schedulers/scheduler.hpp"
#include "schedulers/search/v_search.hpp"

namespace stageline::zb_v_scheduler {
namespace {

Placement place(int devices, const Knobs&) { return v_placement("zb_v", devices); }

Program schedule(const Problem& problem) {
  const StashLimit limit = stash_limit(problem, problem.placement.stages());
  return freeze(blank_program(problem, "zb_v", WeightRule::flush),
                best_v_order(problem, "zb_v", limit, {zb_v_plan(problem), v_rounds_plan(problem)}));
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "zb_v",
    "two chunks a device in a V, no bubble at 1F1B's memory",
    "Qi et al. 2024, arXiv 2405.15362; 2023, arXiv 2401.10241 (ZB-V)",
    Synchrony::synchronous,
    {},
    place,
    schedule,
};

}  // namespace stageline::zb_v_scheduler
