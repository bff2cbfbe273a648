#include "schedulers/search/v_search.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "schedulers/parts/building_block.hpp"
#include "schedulers/search/list_candidates.hpp"
#include "schedulers/search/v_rounds.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_planned = 6;      // blocks that are tried as plans
constexpr std::size_t most_estimated = 400;  // blocks
constexpr int longest_interval = 24;         // slots
constexpr int most_spread = 32;              // devices, with more of which blocks stay close

// A plan as it is, and with devices that do what is ready once their first chunk's forwards are
// over; W in any gap, in those it fits, or so that all devices idle alike.
std::vector<ListRules> rules_of(const StepLists& plan) {
  ListRules rules;
  rules.rank = backward_first();
  rules.plan = plan;
  std::vector<std::size_t> over;  // the first chunk's forwards
  for (std::size_t r = 0; r < plan.size(); ++r) {
    const std::vector<Op>& list = plan[r];
    std::size_t at = list.size();
    while (at > 0 && (list[at - 1].kind != OpKind::forward || list[at - 1].stage != r)) --at;
    over.push_back(at);
  }
  std::vector<ListRules> all;
  for (const bool loose : {false, true}) {
    rules.loose_from = loose ? over : std::vector<std::size_t>{};
    for (const auto& [fill, even] : fills()) {
      rules.fill = fill;
      rules.even_idle = even;
      all.push_back(rules);
    }
  }
  return all;
}

void try_plan(OrderSearch& search, const StepLists& plan) {
  for (const ListRules& rules : rules_of(plan)) search.try_rules(rules);
}

// The best order of the first plan alone.
StepLists best_of_plan(const Problem& problem, const StepLists& plan, const StashLimit& limit) {
  std::optional<ListOutcome> best;
  for (const ListRules& rules : rules_of(plan)) {
    ListOutcome outcome = list_schedule(problem, rules, limit);
    const auto key = [](const ListOutcome& one) { return std::pair(one.span, one.makespan); };
    if (!best || key(outcome) < key(*best)) best = std::move(outcome);
  }
  return best->ops;
}

// So that no device needs more memory than the fullest one does with `order`, where every device
// has as many stashes as the limit allows: the smaller of its two in place of those it lacks.
StashRoom room_like(const Problem& problem, const StepLists& order, const StashLimit& limit) {
  std::vector<std::int64_t> standing(order.size());
  std::vector<std::int64_t> smaller(order.size(), std::numeric_limits<std::int64_t>::max());
  for (std::size_t s = 0; s < problem.costs.stage.size(); ++s) {
    const StageCosts& costs = problem.costs.stage[s];
    const auto d = as_size(problem.placement.stage[s].replicas[0]);
    standing[d] += (costs.weights + costs.gradients + costs.optimizer_state).count;
    smaller[d] = std::min(smaller[d], costs.stash().count);
  }
  std::int64_t most = 0;
  for (std::size_t d = 0; d < order.size(); ++d) {
    std::int64_t bytes = 0;
    std::int64_t stashes = 0;
    std::int64_t most_bytes = 0;
    std::int64_t most_stashes = 0;
    for (const Op op : order[d]) {
      if (op.kind == OpKind::input_grad) continue;
      const int sign = op.kind == OpKind::forward ? 1 : -1;
      stashes += sign;
      bytes += sign * problem.costs.of(op).stash().count;
      most_stashes = std::max(most_stashes, stashes);
      most_bytes = std::max(most_bytes, bytes);
    }
    const std::int64_t lacks = std::max<std::int64_t>(limit.most[d] - most_stashes, 0);
    most = std::max(most, standing[d] + most_bytes + lacks * smaller[d]);
  }
  StashRoom room;
  for (const std::int64_t here : standing) room.bytes.push_back(most - here);
  return room;
}

// Chunks that every device has room for, where they are alike; no limit where negative.
std::int64_t room_in_chunks(const Problem& problem, const StashLimit& limit) {
  std::int64_t room = -1;
  for (std::size_t d = 0; d < std::min(problem.devices.size(), limit.most.size()); ++d) {
    const std::int64_t both = smallest_limit(problem, limit.unit, true, static_cast<int>(d));
    if (limit.most[d] < 0 || both == 0) continue;
    const std::int64_t here =
        2 * (limit.most[d] / both) + (limit.most[d] % both * 2 + both - 1) / both;
    if (room < 0 || here < room) room = here;
  }
  return room;
}

// Blocks that there is room for; where there are none, those of a longer interval.
std::vector<BuildingBlock> blocks_within(const Problem& problem, const StashLimit& limit) {
  const auto devices = static_cast<int>(problem.devices.size());
  const std::int64_t room = room_in_chunks(problem, limit);
  std::vector<BuildingBlock> blocks;
  int last = longest_interval;
  for (int interval = 6; interval <= last; ++interval) {
    if (interval > 6 && devices > most_spread) break;
    for (BuildingBlock& block : every_block(devices, interval)) {
      if (room < 0 || fewest_stashes(block) <= room) blocks.push_back(std::move(block));
    }
    if (!blocks.empty()) last = std::min(last, interval == 6 ? 6 : interval + 3);
  }
  return blocks;
}

// The orders of the blocks, and plans from the best of them.
void try_blocks(OrderSearch& search, const Problem& problem, const StashLimit& limit) {
  const std::vector<BuildingBlock> blocks = blocks_within(problem, limit);
  // So many at most, from all over the list.
  const std::size_t step = blocks.size() / most_estimated + 1;
  std::vector<std::tuple<Time, Time, std::size_t>> found;
  for (std::size_t i = 0; i < blocks.size(); i += step) {
    const std::optional<StepTimes> times = search.estimate(block_order(problem, blocks[i]));
    if (!times) continue;
    const std::tuple one(times->span, times->makespan, i);
    const auto alike = std::find_if(found.begin(), found.end(), [&](const auto& other) {
      return std::get<0>(other) == times->span && std::get<1>(other) == times->makespan;
    });
    if (alike == found.end()) found.push_back(one);
  }
  std::sort(found.begin(), found.end());
  if (found.size() > most_planned) found.resize(most_planned);
  for (const auto& [span, makespan, i] : found) search.try_order(block_order(problem, blocks[i]));
  for (const int early : {0, 1, 2}) {
    for (const auto& [span, makespan, i] : found) {
      try_plan(search, block_plan(problem, blocks[i], early));
    }
  }
}

// Orders with W in rounds.
void try_rounds(OrderSearch& search, const Problem& problem, const StashLimit& limit) {
  for (const StepLists& order : v_round_orders(problem, limit)) search.try_order(order);
}

}  // namespace

void search_v(OrderSearch& search, const Problem& problem, const StashLimit& limit,
              const std::vector<StepLists>& plans) {
  for (const StepLists& plan : plans) try_plan(search, plan);
  if (!search.over()) try_rounds(search, problem, limit);
  try_list_rules(search, problem);
  if (!search.over()) try_blocks(search, problem, limit);
  try_in_flight(search, problem);
  search.climb();
}

StepLists best_v_order(const Problem& problem, const std::string& schedule, const StashLimit& limit,
                       const std::vector<StepLists>& plans) {
  const StepLists own = best_of_plan(problem, plans.front(), limit);
  OrderSearch search(problem, limit, room_like(problem, own, limit), schedule, true);
  search.try_order(own);
  search_v(search, problem, limit, plans);
  return search.best();
}

}  // namespace stageline
