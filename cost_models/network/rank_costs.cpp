// Prices the collectives of a run that block its ops, and brings them together with what ranks
// exchange beside compute (rank_exchanges.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "cost_models/handover.hpp"
#include "cost_models/network/op_times.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// The largest tensor that sequence parallelism gathers among the tensor-parallel ranks of a stage,
// or that the ranks which share an expert gather.
void add_buffers(Costs& costs, const Model& model, const Partition& partition) {
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    Bytes& buffer = nth(costs.stage, partition.stage_of[l]).communication_buffer;
    for (const LayerCollective& collective : model.layers[l].collectives) {
      if (collective.kind != CollectiveKind::all_gather) continue;
      const bool tensor =
          collective.group == Dimension::tensor || collective.group == Dimension::expert_tensor;
      if (tensor) buffer = std::max(buffer, collective.bytes);
    }
  }
}

// The groups that a collective among parts of them has.
std::vector<std::vector<int>> in_use(std::vector<std::vector<int>> groups, const GroupUse& how) {
  const int all = groups.empty() ? 0 : static_cast<int>(groups.front().size());
  const int part = how.part > 0 ? how.part : std::max(all, 1);
  const int ring = how.across ? all / part : part;
  if (all % part != 0 || (how.blocks > 0 && how.blocks != ring)) {
    throw UsageError(fmt::format(
        "a collective of a layer has parts of {} ranks and {} blocks, and its group has {} ranks: "
        "parts must be equal, and blocks as many as the ranks that send them",
        part, how.blocks, all));
  }
  if (how.part == 0) return groups;
  std::vector<std::vector<int>> found;
  for (const std::vector<int>& group : groups) {
    const int parts = static_cast<int>(group.size()) / how.part;
    const int count = how.across ? how.part : parts;
    const int ranks = how.across ? parts : how.part;
    for (int g = 0; g < count; ++g) {
      std::vector<int>& one = found.emplace_back();
      for (int r = 0; r < ranks; ++r) {
        one.push_back(nth(group, how.across ? r * how.part + g : g * how.part + r));
      }
    }
  }
  return found;
}

}  // namespace

const RankedCluster::Blocking& RankedCluster::blocking(const LayerCollective& collective,
                                                       const PipelineRank& rank) {
  const auto key = std::tuple(collective.kind, collective.group, collective.bytes.count,
                              collective.routing, collective.use, rank.pipeline, rank.data);
  const auto known = blocking_.find(key);
  if (known != blocking_.end()) return known->second;
  const auto groups = [&](int data) {
    return in_use(grid_.groups(collective.group, rank.pipeline, data), collective.use);
  };
  Collective asked{
      collective.kind,    collective.bytes,         groups(rank.data), collective.group, {},
      collective.routing, collective.use.blocks > 0};
  if (rank.data >= 0) {
    for (std::vector<int>& group : groups(-1)) {
      const bool own = std::count(asked.groups.begin(), asked.groups.end(), group) > 0;
      if (!own) asked.beside.push_back(std::move(group));
    }
  }
  const CollectivePlan plan = collectives_.plan(asked);
  return blocking_.emplace(key, Blocking{alone(plan.costs), plan.algorithm, plan.entry})
      .first->second;
}

Time RankedCluster::blocking_time(const LayerCollective& collective, const PipelineRank& rank) {
  const Blocking& found = blocking(collective, rank);
  use(collective.group, collective.kind, collective.bytes, found.algorithm, found.entry);
  return found.time;
}

CollectiveCosts RankedCluster::planned(const Collective& collective) {
  CollectivePlan plan = collectives_.plan(collective);
  use(collective.dimension, collective.kind, collective.bytes, plan.algorithm, plan.entry);
  return std::move(plan.costs);
}

void RankedCluster::use(Dimension dimension, CollectiveKind kind, Bytes bytes,
                        std::string_view algorithm, const PricingEntry& entry) {
  if (algorithm == no_algorithm || bytes == Bytes{}) return;
  const auto key = [](const UsedAlgorithm& one) {
    return std::tie(one.dimension, one.kind, one.algorithm, one.entry);
  };
  const UsedAlgorithm now{dimension, kind, algorithm, bytes, bytes, entry};
  const auto at = std::lower_bound(
      used_.begin(), used_.end(), now,
      [&](const UsedAlgorithm& a, const UsedAlgorithm& b) { return key(a) < key(b); });
  if (at == used_.end() || key(*at) != key(now)) {
    used_.insert(at, now);
  } else {
    at->least = std::min(at->least, bytes);
    at->most = std::max(at->most, bytes);
  }
}

// What a micro-batch's ops wait for the collective, and what runs under them.
void RankedCluster::add_op_times(const LayerCollective& collective, const StagePlace& place) {
  const Blocking& found = blocking(collective, rank_of(place.replicas.front()));
  const auto at = std::find_if(used_.begin(), used_.end(), [&](const UsedAlgorithm& one) {
    return one.dimension == collective.group && one.kind == collective.kind &&
           one.algorithm == found.algorithm && one.entry == found.entry;
  });
  if (at == used_.end()) return;
  const Time time = blocking_time(collective, place);
  const auto of_ops = [](const BlockingTimes& times) {
    return checked_sum(times.forward, times.backward);
  };
  add(at->exposed, of_ops(blocking_of(collective, time, false)));
  add(at->hidden, of_ops(hidden_of(collective, time, false)));
}

// The time on the slowest rank that has the stage.
Time RankedCluster::blocking_time(const LayerCollective& collective, const StagePlace& place) {
  Time time{};
  for (const int device : place.replicas) {
    time = std::max(time, blocking_time(collective, rank_of(device)));
  }
  return time;
}

void RankedCluster::add_blocking(Costs& costs, const Model& model, const Partition& partition,
                                 const Placement& placement,
                                 const std::vector<StageRecomputation>& rebuilt) {
  std::vector<int> layers(costs.stage.size());  // so far
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const auto s = as_size(partition.stage_of[l]);
    StageCosts& stage = costs.stage[s];
    const int place = layers[s]++;
    const bool again = rebuilt.empty() || repeats_forward(rebuilt[s], place);
    for (const LayerCollective& collective : model.layers[l].collectives) {
      const Time time = blocking_time(collective, placement.stage[s]);
      const BlockingTimes more = blocking_of(collective, time, again);
      add_times(stage.hidden, hidden_of(collective, time, again));
      add_times(stage.blocking, more);
      add_times(nth(stage.blocking_by, collective.group), more);
      add_times(stage, more);
    }
    if (rebuilt.empty()) continue;
    for (const LayerCollective& collective :
         module_collectives(model.layers[l], rebuilt[s], place)) {
      const Time time = blocking_time(collective, placement.stage[s]);
      BlockingTimes more;
      more.recompute = blocking_of(collective, time, true).recompute;
      stage.hidden.recompute =
          checked_sum(stage.hidden.recompute, hidden_of(collective, time, true).recompute);
      add_times(stage.blocking, more);
      add_times(nth(stage.blocking_by, collective.group), more);
      add_times(stage, more);
    }
  }
}

std::vector<BlockingTimes> RankedCluster::least_blocking(const Model& model,
                                                         std::optional<Dimension> group) {
  const std::lock_guard lock(shared_->access());
  std::map<LayerCollective, Time, bool (*)(const LayerCollective&, const LayerCollective&)> least(
      [](const LayerCollective& a, const LayerCollective& b) {
        return std::tie(a.kind, a.group, a.bytes, a.routing, a.use) <
               std::tie(b.kind, b.group, b.bytes, b.routing, b.use);
      });
  const auto least_of = [&](const LayerCollective& collective) {
    const auto known = least.find(collective);
    if (known != least.end()) return known->second;
    Time time = blocking_time(collective, rank_of(0));
    for (int device = 1; device < static_cast<int>(ranks_.devices.size()); ++device) {
      time = std::min(time, blocking_time(collective, rank_of(device)));
    }
    least.emplace(collective, time);
    return time;
  };
  std::vector<BlockingTimes> layers;
  for (const Layer& layer : model.layers) {
    BlockingTimes& times = layers.emplace_back();
    for (const LayerCollective& collective : layer.collectives) {
      if (group && collective.group != *group) continue;
      add_times(times, blocking_of(collective, least_of(collective), true));
    }
  }
  return layers;
}

// Where all tensor-parallel ranks hold the whole activation, each sends its part of it and the
// receivers gather over their own links (Megatron-LM's scatter/gather optimization, Narayanan et
// al. 2021, arXiv 2104.04473, section 4.1). With sequence parallelism it is divided already.
bool RankedCluster::scatters_messages(const Model& model) const {
  const Degrees& degrees = grid_.degrees();
  return std::max(degrees.tensor_at(0), degrees.tensor) > 1 && !model.sharding.sequence;
}

Costs RankedCluster::priced(Costs costs, const Model& model, const Partition& partition,
                            const Placement& placement, const Recomputation& recomputed) {
  const std::lock_guard lock(shared_->access());
  const bool scattered = scatters_messages(model);
  costs.network = network_;
  if (scattered) costs.network.found = scattered_;
  add_sums_of_copies(costs, placement, ranks_.handover, copies());
  add_collectives(costs, model, partition, placement, recomputed);
  if (folds_) {
    fold(costs, scattered);
    return costs;
  }
  ResourceNumbers numbers = numbers_;
  for (StageCosts& stage : costs.stage) {
    if (stage.reduction) numbers.renumber(stage.reduction->route);
  }
  for (const int resource : numbers.used()) {
    costs.network.resources.push_back(nth(routes_.names(), resource));
    costs.network.capacity.push_back(nth(routes_.capacity(), resource));
  }
  return costs;
}

// Most schedules have the same reductions on the same ranks.
void RankedCluster::fold(Costs& costs, bool scattered) {
  std::vector<const Route*> reductions;
  for (const StageCosts& stage : costs.stage) {
    if (stage.reduction) reductions.push_back(&stage.reduction->route);
  }
  const std::uint64_t pattern = pattern_of(reductions);
  auto known = folded_.find(pattern);
  if (known == folded_.end()) {
    const ResourceFacts facts{routes_.names(), routes_.capacity()};
    known =
        folded_.emplace(pattern, folded(network_, scattered_, numbers_, reductions, facts)).first;
  }
  costs.network = known->second.network;
  if (scattered) costs.network.found = known->second.scattered;
  std::size_t next = 0;
  for (StageCosts& stage : costs.stage) {
    if (stage.reduction) keep_entries(stage.reduction->route, known->second.reductions[next++]);
  }
}

void RankedCluster::add_collectives(Costs& costs, const Model& model, const Partition& partition,
                                    const Placement& placement, const Recomputation& recomputed) {
  const std::vector<StageRecomputation> rebuilt = by_stage(recomputed, model, partition);
  add_blocking(costs, model, partition, placement, rebuilt);
  add_buffers(costs, model, partition);
  add_exchanges(costs, model, partition, placement, rebuilt);
  add_tied(costs, model, partition, placement);
}

std::vector<UsedAlgorithm> RankedCluster::algorithms(const Model& model, const Partition& partition,
                                                     const Placement& placement) {
  const std::lock_guard lock(shared_->access());
  used_.clear();
  Costs costs;
  costs.stage.resize(placement.stage.size());
  add_collectives(costs, model, partition, placement, {});
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    for (const LayerCollective& collective : model.layers[l].collectives) {
      add_op_times(collective, placement.stage[as_size(partition.stage_of[l])]);
    }
  }
  return std::exchange(used_, {});
}

}  // namespace stageline
