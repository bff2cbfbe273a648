// V-Min (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", arXiv 2405.15362): two
// chunks a device in a V, from the building block that keeps chunks as short a time as can be. In
// shares of a device (two chunks) it holds floor((p+4)/3), where 1F1B holds p; a chunk counts until
// its W has ended. The order of F and I is the block's and W fills what is left, unless
// for the costs at hand another order is found that is shorter (schedulers/search/v_search.hpp).
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1
//   0 |01     0a2A  1baB3A2cbC4B3dcD5C4edE6D5feF7E6gfGF 7hgHG   hH
//   1 | 0    01 aA 12abAB23bcBC34cdCD45deDE56efEF67fgFG7 ghGH  hH
//   2 |  0  0  1 a1Aa2Ab2Bb3Bc3Cc4Cd4Dd5De5Ee6Ef6Ff7Fg7GgG hH hH
//   3 |   00    11aaAA22bbBB33ccCC44ddDD55eeEE66ffFF77ggGG  hhHH
#include "schedulers/parts/building_block.hpp"
#include "schedulers/scheduler.hpp"
#include "schedulers/search/v_search.hpp"

namespace stageline::v_min_scheduler {
namespace {

Placement place(int devices, const Knobs&) { return v_placement("v_min", devices); }

Program schedule(const Problem& problem) {
  const std::int64_t p = problem.placement.stages() / 2;
  const StashLimit limit = stash_limit(problem, 2 * ((p + 4) / 3));
  const BuildingBlock block = v_min_block(static_cast<int>(p));
  const auto plan = [&](int early) { return block_plan(problem, block, early); };
  return freeze(blank_program(problem, "v_min", WeightRule::flush),
                best_v_order(problem, "v_min", limit, {plan(0), plan(1)}));
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "v_min",
    "two chunks a device in a V, a third of 1F1B's activations",
    "Qi et al. 2024, arXiv 2405.15362 (V-Min)",
    Synchrony::synchronous,
    {},
    place,
    schedule,
};

}  // namespace stageline::v_min_scheduler
