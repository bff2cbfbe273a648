#include "schedulers/parts/priorities.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

// The kind, the micro-batch, and stages from the last to the first.
std::int64_t in_order(bool later, int stage, std::uint32_t m) {
  return (std::int64_t{later ? 1 : 0} << 52) + (std::int64_t{m} << 17) - stage;
}

// By stage and micro-batch, from the start of F, and of I or B, to the end of the step.
struct Ways {
  std::size_t count = 0;  // micro-batches
  std::vector<std::int64_t> forward;
  std::vector<std::int64_t> backward;
};
Ways ways_of(const Problem& problem, bool split) {
  const Costs& costs = problem.costs;
  const auto stages = costs.stage.size();
  const auto count = as_size(problem.microbatches);
  Ways ways{count, std::vector<std::int64_t>(stages * count),
            std::vector<std::int64_t>(stages * count)};
  // Edges lead to later stages: what feeds a stage has its I, and what it feeds its F, before it.
  const auto longest = [&](std::vector<std::int64_t>& way, std::size_t s,
                           const std::vector<std::int64_t>& next, std::size_t to) {
    for (std::size_t m = 0; m < count; ++m) {
      way[s * count + m] = std::max(way[s * count + m], next[to * count + m]);
    }
  };
  const auto in_turn = [&](std::vector<std::int64_t>& way, std::size_t s, Time each) {
    for (std::size_t m = count; m-- > 0;) {
      std::int64_t& here = way[s * count + m];
      if (m + 1 < count) here = std::max(here, way[s * count + m + 1]);
      here += each.count();
    }
  };
  std::vector<std::vector<std::size_t>> before(stages);
  std::vector<std::vector<std::size_t>> after(stages);
  for (const EdgeCosts& edge : costs.edges) {
    before[edge.edge.to].push_back(edge.edge.from);
    after[edge.edge.from].push_back(edge.edge.to);
  }
  for (std::size_t s = 0; s < stages; ++s) {
    const StageCosts& stage = costs.stage[s];
    for (std::size_t m = 0; split && m < count; ++m) {
      ways.backward[s * count + m] = stage.weight_grad.count();
    }
    for (const std::size_t from : before[s]) longest(ways.backward, s, ways.backward, from);
    in_turn(ways.backward, s, split ? stage.input_grad : stage.backward);
  }
  for (std::size_t s = stages; s-- > 0;) {
    longest(ways.forward, s, ways.backward, s);
    for (const std::size_t to : after[s]) longest(ways.forward, s, ways.forward, to);
    in_turn(ways.forward, s, costs.stage[s].forward);
  }
  return ways;
}

}  // namespace

Rank backward_first() {
  return [](OpKind kind, int stage, std::uint32_t m) {
    return in_order(kind == OpKind::forward, stage, m);
  };
}

Rank forward_first() {
  return [](OpKind kind, int stage, std::uint32_t m) {
    return in_order(kind != OpKind::forward, stage, m);
  };
}

Rank critical_path_first(const Problem& problem, bool split) {
  return [ways = ways_of(problem, split)](OpKind kind, int stage, std::uint32_t m) {
    const std::size_t at = as_size(stage) * ways.count + m;
    return -(kind == OpKind::forward ? ways.forward[at] : ways.backward[at]);
  };
}

}  // namespace stageline
