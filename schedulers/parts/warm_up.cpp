#include "schedulers/parts/warm_up.hpp"

#include <algorithm>

#include "schedulers/parts/stages_behind.hpp"

namespace stageline {
namespace {

// Forwards that the limit has room for, and the step.
int room(const Problem& problem, const StashLimit& limit, std::size_t s) {
  const std::int64_t all = problem.microbatches;
  if (s >= limit.most.size() || limit.most[s] < 0) return static_cast<int>(all);
  const std::int64_t one =
      limit.unit == StashLimit::Unit::stashes
          ? 1
          : std::max<std::int64_t>(problem.costs.stage[s].stash_split().count, 1);
  return static_cast<int>(std::clamp<std::int64_t>(limit.most[s] / one, 1, all));
}

}  // namespace

WarmUp by_distance(const Problem& problem, int factor) {
  std::vector<StageEdge> edges;
  for (const EdgeCosts& edge : problem.costs.edges) edges.push_back(edge.edge);
  WarmUp counts;
  for (const int behind : stages_behind(edges, problem.placement.stages())) {
    counts.push_back(factor * behind + 1);
  }
  return counts;
}

WarmUp until_first_backward(const Problem& problem, const StashLimit& limit, bool over) {
  const Costs& costs = problem.costs;
  const auto p = costs.stage.size();
  std::vector<Time> way(p);   // of the message from the stage before
  std::vector<Time> back(p);  // and back to it
  for (const EdgeCosts& edge : costs.edges) {
    if (edge.edge.to != edge.edge.from + 1) continue;
    const Route& there = costs.network.between(edge.edge.from, edge.edge.to);
    const Route& here = costs.network.between(edge.edge.to, edge.edge.from);
    way[edge.edge.to] = transfer_time(edge.activation, there.bandwidth) + there.latency;
    back[edge.edge.to] = transfer_time(edge.gradient, here.bandwidth) + here.latency;
  }
  std::vector<Time> first(p);    // F of the first micro-batch ends
  std::vector<Time> slowest(p);  // F so far: the pace at which they come
  Time at{};
  Time slow{1};
  for (std::size_t s = 0; s < p; ++s) {
    first[s] = at += way[s] + costs.stage[s].forward;
    slowest[s] = slow = std::max(slow, costs.stage[s].forward);
  }
  WarmUp counts(p, 1);
  Time arrives = first[p - 1];  // of the gradient
  for (std::size_t s = p; s-- > 0;) {
    const Time wait = std::max(arrives - first[s], Time{});
    std::int64_t fit = 1 + wait / slowest[s];
    if (over && wait % slowest[s] != Time{}) ++fit;
    if (s + 1 < p) fit = std::max<std::int64_t>(fit, counts[s + 1]);
    counts[s] = static_cast<int>(std::min<std::int64_t>(fit, room(problem, limit, s)));
    const Time starts = std::max(arrives, first[s] + slowest[s] * (counts[s] - 1));
    arrives = starts + costs.stage[s].input_grad + back[s];
  }
  return counts;
}

std::vector<WarmUp> warm_ups_for(const Problem& problem, const StashLimit& limit) {
  std::vector<WarmUp> all;
  for (WarmUp counts :
       {by_distance(problem, 1), by_distance(problem, 2),
        until_first_backward(problem, limit, false), until_first_backward(problem, limit, true)}) {
    for (std::size_t s = 0; s < counts.size(); ++s) {
      counts[s] = std::min(counts[s], room(problem, limit, s));
    }
    if (std::find(all.begin(), all.end(), counts) == all.end()) all.push_back(counts);
    for (std::size_t s = 1; s < counts.size(); ++s) {
      counts[s] = std::min(counts[s], std::max(counts[s - 1] - 1, 1));
    }
    if (std::find(all.begin(), all.end(), counts) == all.end()) all.push_back(counts);
  }
  return all;
}

std::vector<std::vector<Op>> in_turn(const Problem& problem, const WarmUp& warm_up, bool whole) {
  const int count = problem.microbatches;
  std::vector<std::vector<Op>> lists(problem.devices.size());
  for (std::size_t s = 0; s < warm_up.size(); ++s) {
    const int ahead = std::min(warm_up[s], count) - 1;
    int weights = 0;
    const auto add = [&](OpKind kind, int m) {
      lists[s].push_back(op_of(kind, static_cast<int>(s), static_cast<std::uint32_t>(m)));
    };
    for (int i = 0; i < count + ahead; ++i) {
      if (i < count) add(OpKind::forward, i);
      const int back = i - ahead;
      if (back < 0) continue;
      add(whole ? OpKind::backward : OpKind::input_grad, back);
      if (!whole && back + warm_up[s] >= warm_up[0]) {
        add(OpKind::weight_grad, weights++);
      }
    }
    while (!whole && weights < count) add(OpKind::weight_grad, weights++);
  }
  return lists;
}

}  // namespace stageline
