// V-Half (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", arXiv 2405.15362): two
// chunks a device in a V, from a building block that keeps a chunk half as long as 1F1B's first
// device does. In shares of a device (two chunks) it holds floor((p+2)/2), where 1F1B holds p; a
// chunk counts until its W has ended. The order of F and I is the block's and W fills what is left,
// unless for the costs at hand another order is found that is shorter
// (schedulers/search/v_search.hpp). (Second chunk's ops are drawn as the first's.)
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1
//   0 |012    0a13bA2B4acA3C5bdB4D6ceC5E7dfD6gFeGE7hfHgFG hH
//   1 | 012  0 1aA32bBa4A3cCb5B4dDc6C5eEd7D6fFegE7GfhgFHGhH
//   2 |  01 0 12 a2A3abA3B4bcB4C5cdC5D6deD6E7efE7gfFghGFhGHH
//   3 |   0011  22aaA3A3bbB4B4ccC5C5ddD6D6eeE7E7ffggFFhhGGHH
#include "schedulers/parts/building_block.hpp"
#include "schedulers/scheduler.hpp"
#include "schedulers/search/v_search.hpp"

namespace stageline::v_half_scheduler {
namespace {

Placement place(int devices, const Knobs&) { return v_placement("v_half", devices); }

Program schedule(const Problem& problem) {
  const std::int64_t p = problem.placement.stages() / 2;
  const StashLimit limit = stash_limit(problem, 2 * ((p + 2) / 2));
  const BuildingBlock block = v_half_block(static_cast<int>(p));
  const auto plan = [&](int early) { return block_plan(problem, block, early); };
  return freeze(blank_program(problem, "v_half", WeightRule::flush),
                best_v_order(problem, "v_half", limit, {plan(0), plan(1)}));
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "v_half",
    "two chunks a device in a V, half of 1F1B's activations",
    "Qi et al. 2024, arXiv 2405.15362 (V-Half)",
    Synchrony::synchronous,
    {},
    place,
    schedule,
};

}  // namespace stageline::v_half_scheduler
