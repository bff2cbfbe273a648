#include "schedulers/search/grouped_candidates.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "schedulers/search/list_candidates.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_ordered = 3;   // groups whose orders are simulated
constexpr std::size_t most_followed = 2;  // of them, that are plans of list schedules
constexpr int most_sizes = 32;            // of groups, from all over where devices are more

// Sizes from 1 up to the number of devices.
std::vector<Grouping> groupings(const Problem& problem) {
  const auto devices = static_cast<int>(problem.devices.size());
  const int most = std::min(devices, problem.microbatches);
  const int step = (most + most_sizes - 1) / most_sizes;
  std::vector<Grouping> all;
  for (int group = most; group >= 1; group -= step) all.push_back(grouping_of(devices, group));
  return all;
}

// F and I.
StepLists without_weight_grads(StepLists lists) {
  for (std::vector<Op>& list : lists) {
    std::erase_if(list, [](const Op& op) { return op.kind == OpKind::weight_grad; });
  }
  return lists;
}

}  // namespace

void try_grouped(OrderSearch& search, const Problem& problem) {
  std::vector<std::tuple<Time, Time, StepLists>> found;
  for (const Grouping& grouping : groupings(problem)) {
    StepLists lists = grouped_order(problem, grouping, true);
    const std::optional<StepTimes> times = search.estimate(lists);
    if (times) found.emplace_back(times->span, times->makespan, std::move(lists));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  if (found.size() > most_ordered) found.resize(most_ordered);
  for (const auto& [span, makespan, lists] : found) search.try_order(lists);
  if (found.size() > most_followed) found.resize(most_followed);
  ListRules rules;
  rules.rank = backward_first();
  for (auto& [span, makespan, lists] : found) {
    rules.plan = without_weight_grads(std::move(lists));
    for (const auto& [fill, even] : fills()) {
      rules.fill = fill;
      rules.even_idle = even;
      search.try_rules(rules);
    }
  }
}

std::vector<CyclicRound> grouped_rounds(const Problem& problem) {
  const auto devices = static_cast<int>(problem.devices.size());
  const int chunks = problem.placement.stages() / devices;
  std::vector<CyclicRound> rounds;
  for (const Grouping& grouping : groupings(problem)) {
    // Both ends of a step are shorter than half of so many groups.
    Problem longer = problem;
    longer.steps = 1;
    longer.microbatches = grouping.group * (4 * chunks * grouping.in_flight + 4);
    const StepLists lists = grouped_order(longer, grouping, true);
    std::optional<CyclicRound> round =
        middle_round(lists, problem.placement.stages(), grouping.group);
    if (round) rounds.push_back(*std::move(round));
  }
  return rounds;
}

}  // namespace stageline
