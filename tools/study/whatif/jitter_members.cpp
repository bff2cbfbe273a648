// Counts the members of ranks, and groups the tasks of replicas that wait for one another.
#include "tools/study/whatif/jitter_members.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

bool in_passes(const BlockingTimes& times) {
  BlockingTimes passes = times;
  passes.update = Time{};
  return passes != BlockingTimes{};
}

// The replicas that share a layer's experts at a pipeline rank: of each, the first of them.
std::vector<int> expert_neighbours(const RankGrid& grid, int pipeline) {
  const Degrees& degrees = grid.degrees();
  std::map<int, int> replica;  // by device
  for (int data = 0; data < degrees.data; ++data) {
    for (const int device : grid.members(pipeline, data)) replica[device] = data;
  }
  std::vector<int> first(as_size(degrees.data));
  std::iota(first.begin(), first.end(), 0);
  const auto join = [&](Dimension dimension) {
    for (const std::vector<int>& group : grid.groups(dimension, pipeline)) {
      int least = degrees.data;
      for (const int device : group) least = std::min(least, nth(first, replica.at(device)));
      for (const int device : group) nth(first, replica.at(device)) = least;
    }
  };
  join(Dimension::expert);
  if (degrees.folded()) join(Dimension::expert_tensor);
  return first;
}

class MemberCounter {
 public:
  MemberCounter(const RankedCluster& ranked, const Costs& costs)
      : ranked_(ranked), costs_(costs), degrees_(ranked.grid().degrees()) {}

  // The first of the replicas that do the op with this one, and how many of them a simulated
  // pipeline stands for.
  std::pair<int, int> replicas_of(Op op, int device) {
    const int replica = ranked_.replicas() > 1 ? device / degrees_.pipeline : 0;
    const StageCosts& stage = costs_.of(op);
    const auto waits = [&](Dimension dimension) {
      const BlockingTimes& times = nth(stage.blocking_by, dimension);
      return in_passes(times) || (op.kind == OpKind::update && times.update > Time{});
    };
    if (waits(Dimension::data)) return {0, ranked_.copies()};
    if (!waits(Dimension::expert) && !waits(Dimension::expert_tensor)) return {replica, 1};
    if (ranked_.replicas() == 1) {
      const int own = degrees_.tensor * degrees_.context;
      const int spanned = std::lcm(degrees_.expert_width(), own) / own;
      return {0, std::min(spanned, ranked_.copies())};
    }
    const int pipeline = device % degrees_.pipeline;
    const auto [known, is_new] = neighbours_.try_emplace(pipeline);
    if (is_new) known->second = expert_neighbours(ranked_.grid(), pipeline);
    return {nth(known->second, replica), 1};
  }

 private:
  const RankedCluster& ranked_;
  const Costs& costs_;
  const Degrees& degrees_;
  std::map<int, std::vector<int>> neighbours_;  // by pipeline rank
};

}  // namespace

JitterMembers jitter_members(const Case& asked, const Costs& costs, const TaskGraph& graph) {
  JitterMembers members;
  if (asked.ranked == nullptr) return members;
  const RankedCluster& ranked = *asked.ranked;
  const Degrees& degrees = ranked.grid().degrees();
  const int replicas = ranked.replicas();
  MemberCounter counter(ranked, costs);
  // The op as its pipeline has it, and the first of the replicas that do it together.
  using Key = std::tuple<OpKind, std::uint8_t, std::uint16_t, std::uint32_t, int>;
  std::map<Key, std::uint32_t> leader;
  members.count.assign(graph.tasks(), 1);
  members.leader.resize(graph.tasks());
  bool alone = true;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    members.leader[task] = task;
    const Op op = graph.op[task];
    if (lane_of(op.kind) != LaneKind::compute) continue;
    const int device = graph.lanes[graph.lane[task]].device;
    const auto [first, copies] = counter.replicas_of(op, device);
    const int own = degrees.tensor_at(device % degrees.pipeline) * degrees.context;
    members.count[task] = static_cast<std::uint32_t>(own * copies);
    if (replicas == 1) continue;
    const bool counts = counts_microbatches(op.kind);
    const auto by = static_cast<std::uint32_t>(replicas);
    const Key key{op.kind, static_cast<std::uint8_t>(counts ? op.part : op.part / by), op.stage,
                  counts ? op.microbatch / by : op.microbatch, first};
    members.leader[task] = leader.try_emplace(key, task).first->second;
    alone = alone && members.leader[task] == task;
  }
  if (alone) members.leader.clear();
  return members;
}

}  // namespace stageline
