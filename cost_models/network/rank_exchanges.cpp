// Prices what data-parallel ranks exchange: reductions in buckets, gathers of divided weights,
// gradients of tied weights.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "cost_models/buckets.hpp"
#include "cost_models/network/op_times.hpp"
#include "cost_models/state_bytes.hpp"
#include "cost_models/tied_weights.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// Whether the model counts parameters: a layer with weights and none of its own then has another
// layer's, as in traces that do not state which weights are tied.
bool counts_parameters(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const Layer& one) { return one.parameters > 0; });
}

struct StageBytes {
  Bytes weights{};
  Bytes gradients{};
};

// Bytes of the stage that are trained.
StageBytes bytes_of(const Model& model, const Partition& partition, int stage, WeightKind kind) {
  StageBytes sum;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    if (partition.stage_of[l] != stage) continue;
    if (model.encoder.frozen && l < as_size(model.encoder.count)) continue;
    const Layer& layer = model.layers[l];
    sum.weights += part_of_kind(layer, layer.weights, kind);
    sum.gradients += part_of_kind(layer, layer.gradients, kind);
  }
  return sum;
}

// Whether the trace says what there is to exchange: then a layer or a stage without any exchanges
// nothing, and takes no latency for it. Else, as for messages, it takes the latency alone.
bool states_gradients(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const Layer& one) { return one.gradients > Bytes{}; });
}

Time backward_time(const Model& model, const Partition& partition, int stage) {
  Time sum{};
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    if (partition.stage_of[l] == stage) add(sum, model.layers[l].backward);
  }
  return sum;
}

std::vector<StateExchange> exchanges_of(const Degrees& degrees, const StageBytes& bytes,
                                        WeightKind kind) {
  const double share = gathered_share(degrees.precision);
  const Bytes weights =
      share == 1 ? bytes.weights
                 : Bytes{std::llround(std::ceil(static_cast<double>(bytes.weights.count) * share))};
  return state_exchanges(degrees.zero, exchanges_every(degrees), weights, bytes.gradients,
                         shard_groups(degrees), ranks_that_divide(degrees, kind));
}

void add_to_update(StageCosts& stage, Time time) {
  add(stage.blocking.update, time);
  add(nth(stage.blocking_by, Dimension::data).update, time);
  add(stage.update, time);
}

// Collectives of the same ranks as one flow, whose bytes progress at the mean rate and load each
// link as they do together. At least one.
CollectiveCosts one_behind_the_other(const std::vector<CollectiveCosts>& parts) {
  CollectiveCosts whole;
  for (const CollectiveCosts& part : parts) whole.bytes += part.bytes;
  if (parts.size() == 1 || whole.bytes == Bytes{}) return parts.front();
  std::map<int, double> carried;  // bytes, by resource
  double seconds = 0;
  for (const CollectiveCosts& part : parts) {
    add(whole.setup, part.setup);
    whole.route.tier = std::max(whole.route.tier, part.route.tier);
    if (!part.route.bandwidth.is_unlimited()) {
      seconds += static_cast<double>(part.bytes.count) /
                 static_cast<double>(part.route.bandwidth.bytes_per_second);
    }
    for (std::size_t i = 0; i < part.route.resources.size(); ++i) {
      const double load = part.route.load.empty() ? 1 : part.route.load[i];
      carried[part.route.resources[i]] += load * static_cast<double>(part.bytes.count);
    }
  }
  whole.route.bandwidth = Bandwidth::unlimited();
  if (seconds > 0) {
    const double rate = static_cast<double>(whole.bytes.count) / seconds;
    whole.route.bandwidth = {std::max<std::int64_t>(1, static_cast<std::int64_t>(rate))};
  }
  for (const auto& [resource, bytes] : carried) {
    whole.route.resources.push_back(resource);
    whole.route.load.push_back(bytes / static_cast<double>(whole.bytes.count));
  }
  return whole;
}

}  // namespace

// The weights that are exchanged among ranks of their own.
std::vector<WeightKind> RankedCluster::kinds_in(const Model& model) const {
  const Degrees& degrees = grid_.degrees();
  const bool experts = (degrees.expert > 1 || degrees.folded()) &&
                       std::any_of(model.layers.begin(), model.layers.end(),
                                   [](const Layer& layer) { return layer.expert_parameters > 0; });
  if (!experts) return {WeightKind::all};
  return {WeightKind::dense, WeightKind::experts};
}

// How many ranks hold the same weights of the stage.
int RankedCluster::holders_of(const StagePlace& place, WeightKind weights) const {
  const Degrees& degrees = grid_.degrees();
  const int dense = static_cast<int>(place.replicas.size()) * degrees.context * copies();
  if (weights != WeightKind::experts) return dense;
  return std::max(1, dense * degrees.tensor / degrees.expert_width());
}

// A collective among ranks that hold the same weights of the stage: all, or where there are shard
// groups those of each, or one of each at the same place.
CollectiveCosts RankedCluster::among_holders(CollectiveKind kind, Bytes bytes,
                                             const StagePlace& place, WeightKind weights,
                                             Among among) {
  const Degrees& degrees = grid_.degrees();
  const bool experts = weights == WeightKind::experts;
  Collective collective{kind, bytes, {}, Dimension::data};
  const int tensor = degrees.tensor_at(rank_of(place.replicas.front()).pipeline);
  for (int t = 0; t < (experts ? degrees.expert_tensor_ranks() : tensor); ++t) {
    for (int e = 0; e < (experts ? degrees.expert : 1); ++e) {
      std::map<int, std::vector<int>> holders;  // by pipeline rank
      for (const int device : place.replicas) {
        const PipelineRank rank = rank_of(device);
        const std::vector<int> members = experts
                                             ? grid_.expert_holders(rank.pipeline, t, e, rank.data)
                                             : grid_.holders(rank.pipeline, t, rank.data);
        std::vector<int>& of_rank = holders[rank.pipeline];
        of_rank.insert(of_rank.end(), members.begin(), members.end());
      }
      add_groups(holders, among, collective.groups);
    }
  }
  return planned(collective);
}

void RankedCluster::add_groups(const std::map<int, std::vector<int>>& holders, Among among,
                               std::vector<std::vector<int>>& groups) const {
  std::vector<std::vector<int>> shards;
  for (const auto& [pipeline, ranks] : holders) {
    for (std::vector<int>& one : grid_.shards_of(ranks)) shards.push_back(std::move(one));
  }
  std::vector<std::vector<int>> found;
  if (shards.size() == holders.size()) {  // each is all of a pipeline rank
    std::vector<int>& all = found.emplace_back();
    for (const std::vector<int>& one : shards) all.insert(all.end(), one.begin(), one.end());
  } else if (among == Among::shard_group) {
    found = std::move(shards);
  } else {
    found.resize(shards.front().size());
    for (const std::vector<int>& one : shards) {
      for (std::size_t i = 0; i < one.size(); ++i) found[i].push_back(one[i]);
    }
  }
  for (std::vector<int>& group : found) {
    std::sort(group.begin(), group.end());
    groups.push_back(std::move(group));
  }
}

// The layers with the times that their ops take on the ranks of their stages, beside which data-
// parallel exchanges run: at their rates, and with what blocks.
Model RankedCluster::as_run(const Costs& costs, Model model, const Partition& partition,
                            const Placement& placement) {
  struct Sums {
    Time forward{}, backward{}, weight_grad{};
  };
  std::vector<Sums> alone(costs.stage.size());
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    Sums& sums = nth(alone, partition.stage_of[l]);
    add(sums.forward, layer.forward);
    add(sums.backward, layer.backward);
    add(sums.weight_grad, layer.weight_grad);
  }
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const auto s = as_size(partition.stage_of[l]);
    const StageCosts& stage = costs.stage[s];
    Layer& layer = model.layers[l];
    BlockingTimes blocked;
    for (const LayerCollective& collective : layer.collectives) {
      add_times(blocked,
                blocking_of(collective, blocking_time(collective, placement.stage[s]), false));
    }
    const auto run = [](Time& time, Time of_stage, Time all, Time more) {
      if (all > Time{}) time = scaled(time, of_stage.count(), all.count()).value_or(time);
      add(time, more);
    };
    run(layer.forward, stage.forward - stage.blocking.forward, alone[s].forward, blocked.forward);
    run(layer.backward, stage.backward - stage.blocking.backward, alone[s].backward,
        blocked.backward);
    run(layer.weight_grad, stage.weight_grad - stage.blocking.weight_grad, alone[s].weight_grad,
        blocked.weight_grad);
  }
  return model;
}

// The data-parallel exchanges of a stage are priced with the bytes that its layers have undivided.
void RankedCluster::add_exchanges(Costs& costs, const Model& undivided, const Partition& partition,
                                  const Placement& placement,
                                  const std::vector<StageRecomputation>& rebuilt) {
  const Degrees& degrees = grid_.degrees();
  const std::vector<WeightKind> kinds = kinds_in(undivided);
  const auto is_alone = [&](const StagePlace& place) {
    return std::all_of(kinds.begin(), kinds.end(),
                       [&](WeightKind kind) { return holders_of(place, kind) == 1; });
  };
  if (std::all_of(placement.stage.begin(), placement.stage.end(), is_alone)) return;
  const Model model = as_run(costs, undivided, partition, placement);
  for (std::size_t s = 0; s < costs.stage.size(); ++s) {
    const StagePlace& place = placement.stage[s];
    const int here = static_cast<int>(place.replicas.size());
    if (is_alone(place)) continue;
    StageCosts& stage = costs.stage[s];
    if (reduces_in_every_backward(degrees)) {
      add_gathers(stage, units_of(model, partition, static_cast<int>(s), place),
                  rebuilt.empty() ? StageRecomputation{} : rebuilt[s]);
      if (here > 1) stage.reduction = CollectiveCosts{};
    }
    if (reduces_once(degrees)) {
      stage.reduction = overlapped(model, partition, static_cast<int>(s), place);
    }
    for (const WeightKind kind : kinds) {
      if (kind == WeightKind::dense && holders_of(place, kind) == 1) continue;
      const StageBytes bytes = bytes_of(model, partition, static_cast<int>(s), kind);
      for (const StateExchange& exchange : exchanges_of(degrees, bytes, kind)) {
        if (exchange.when != ExchangeTime::update) continue;
        if (exchange.bytes == Bytes{} && states_gradients(model)) continue;
        add_to_update(stage, alone(among_holders(exchange.kind, exchange.bytes, place, kind,
                                                 exchange.among)));
      }
      if (find_bucket_rule(buckets_).copies && !reduces_in_every_backward(degrees)) {
        stage.gradients += bytes.gradients;
      }
    }
  }
  if (degrees.zero == Zero::weights && !reduces_in_every_backward(degrees)) {
    add_first_gathers(costs, model, partition, placement);
  }
}

// A reduction whose buckets fill while the last backward runs. Its tasks, one for each rank that
// has the stage, carry equal shares.
CollectiveCosts RankedCluster::overlapped(const Model& model, const Partition& partition, int stage,
                                          const StagePlace& place) {
  const Degrees& degrees = grid_.degrees();
  const int ranks = holders_of(place, WeightKind::dense);
  const double gradient_bytes = degrees.precision.name.empty() ? 4 : degrees.precision.gradients;
  const BucketRule& rule = find_bucket_rule(buckets_);
  const BucketLimits limits = bucket_limits(rule, ranks, gradient_bytes, stage == 0);
  std::vector<CollectiveCosts> parts;
  std::vector<ReducedBuckets> reduced;
  for (const WeightKind kind : kinds_in(model)) {
    const StageBytes bytes = bytes_of(model, partition, stage, kind);
    const bool experts = kind == WeightKind::experts;
    if (experts && bytes.gradients == Bytes{}) continue;
    if (holders_of(place, kind) == 1) continue;
    for (const StateExchange& exchange : exchanges_of(degrees, bytes, kind)) {
      if (exchange.when != ExchangeTime::last_backward) continue;
      const CollectiveCosts& part = parts.emplace_back(
          among_holders(exchange.kind, exchange.bytes, place, kind, exchange.among));
      GradientBuckets filled = fill_buckets(backward_order(model, partition, stage, kind), limits);
      if (exchange.among == Among::shard_groups) {
        const int divided = ranks_that_divide(degrees, kind);
        for (GradientBucket& bucket : filled.buckets) {
          bucket.bytes = {(bucket.bytes.count + divided - 1) / divided};
        }
      }
      reduced.push_back({std::move(filled), part.setup, part.route.bandwidth});
    }
  }
  if (parts.empty()) return {};
  CollectiveCosts whole = one_behind_the_other(parts);
  if (whole.bytes == Bytes{} && states_gradients(model)) return {};
  Time in_a_row{};  // all buckets
  for (const ReducedBuckets& one : reduced) {
    for (const GradientBucket& bucket : one.buckets.buckets) {
      add(in_a_row, checked_sum(one.setup, transfer_time(bucket.bytes, one.bandwidth)));
    }
  }
  const Time moving = transfer_time(whole.bytes, whole.route.bandwidth);
  whole.setup = std::max(whole.setup, in_a_row - moving);
  // So late that it need not wait for a bucket any more: it holds its lane no longer than it works.
  if (!rule.behind) whole.head_start = std::max(Time{}, in_a_row - behind_backward(reduced));
  if (whole.head_start > Time{}) whole.backward = backward_time(model, partition, stage);
  if (whole.route.load.empty()) whole.route.load.resize(whole.route.resources.size(), 1);
  for (double& load : whole.route.load) load /= static_cast<double>(place.replicas.size());
  return whole;
}

// The units of a stage, in forward order: its layers with weights.
std::vector<StageUnit> RankedCluster::units_of(const Model& model, const Partition& partition,
                                               int stage, const StagePlace& place) {
  const bool gathers = grid_.degrees().zero == Zero::weights;
  const std::vector<WeightKind> kinds = kinds_in(model);
  const bool stated = states_gradients(model);
  // Layers are mostly alike.
  std::map<std::tuple<CollectiveKind, std::int64_t, WeightKind>, Time> known;
  const auto time_of = [&](CollectiveKind exchange, Bytes bytes, WeightKind kind) {
    if (bytes == Bytes{} && stated) return Time{};
    const auto [found, is_new] = known.try_emplace({exchange, bytes.count, kind});
    if (is_new)
      found->second = alone(among_holders(exchange, bytes, place, kind, Among::shard_group));
    return found->second;
  };
  std::vector<StageUnit> units;
  int next = 0;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    if (partition.stage_of[l] != stage) continue;
    const int layer_place = next++;
    const Layer& layer = model.layers[l];
    if (layer.weights + layer.shared_weights == Bytes{}) continue;
    GatheredUnit unit{layer.forward, layer.backward, Time{}, Time{}};
    for (const WeightKind kind : kinds) {
      const Bytes weights =
          part_of_kind(layer, layer.weights + layer.shared_weights, kind);  // all that F and B read
      const Bytes gradients = part_of_kind(layer, layer.gradients, kind);
      if (weights == Bytes{} && gradients == Bytes{}) continue;
      if (gathers) add(unit.gather, time_of(CollectiveKind::all_gather, weights, kind));
      add(unit.scatter, time_of(CollectiveKind::reduce_scatter, gradients, kind));
    }
    units.push_back({unit, layer.weight_grad, layer_place});
  }
  return units;
}

void RankedCluster::add_gathers(StageCosts& stage, const std::vector<StageUnit>& layers,
                                const StageRecomputation& rebuilt) {
  const bool gathers = grid_.degrees().zero == Zero::weights;
  std::vector<GatheredUnit> units;
  std::vector<GatheredUnit> again;  // of R, where that leaves out some layers
  std::vector<GatheredUnit> split;  // beside W alone
  for (const StageUnit& layer : layers) {
    const GatheredUnit& unit = units.emplace_back(layer.unit);
    split.push_back({unit.forward, layer.weight_grad, unit.gather, unit.scatter});
    if (repeats_forward(rebuilt, layer.place)) again.push_back(unit);
  }
  const ExposedTimes exposed = exposed_gathers(units);
  const Time in_recompute =
      rebuilt.layers.empty() ? exposed.forward : exposed_gathers(again).forward;
  BlockingTimes more;
  more.forward = exposed.forward;
  more.recompute = in_recompute;
  more.backward = exposed.backward;
  // Where weights are gathered, the last reduce-scatter is priced with them, in I.
  (gathers ? more.input_grad : more.weight_grad) =
      gathers ? exposed.backward : exposed_gathers(split).backward;
  add_times(stage.blocking, more);
  add_times(nth(stage.blocking_by, Dimension::data), more);
  add_times(stage, more);
}

// Weights that stay gathered for a step: what their gathers expose in the first F of the next step
// stands behind the update, where a device that waits for its first micro-batch hides it. A device
// gathers its stages in their order, the next one's first unit beside the last one's last.
void RankedCluster::add_first_gathers(Costs& costs, const Model& model, const Partition& partition,
                                      const Placement& placement) {
  std::map<int, Time> last_forward;  // by device, of the last unit so far
  for (std::size_t s = 0; s < costs.stage.size(); ++s) {
    const StagePlace& place = placement.stage[s];
    std::vector<GatheredUnit> units;
    for (const StageUnit& unit : units_of(model, partition, static_cast<int>(s), place)) {
      units.push_back(unit.unit);
    }
    if (units.empty()) continue;
    Time before = units.front().gather;
    for (const int device : place.replicas) before = std::min(before, last_forward[device]);
    for (const int device : place.replicas) last_forward[device] = units.back().forward;
    add_to_update(costs.stage[s], exposed_first_gathers(units, before));
  }
}

// A layer whose weights are another's (tied embeddings) and that is on other ranks: the ranks of
// both hold a copy, and add up their gradients before the update: of ZeRO 2 and 3, the part that
// each rank has of them.
void RankedCluster::add_tied(Costs& costs, const Model& model, const Partition& partition,
                             const Placement& placement) {
  const bool counts = counts_parameters(model);
  const auto front = as_size(model.encoder.count);
  const auto first = as_size(partition.stage_of[front]);
  for (std::size_t l = front + 1; l < model.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    const auto other = as_size(partition.stage_of[l]);
    const bool tied = layer.tied_weights != Bytes{} ||
                      (counts && layer.parameters == 0 && layer.weights != Bytes{});
    if (!tied || other == first) continue;
    const PipelineRank one = rank_of(placement.stage[first].replicas.front());
    const PipelineRank two = rank_of(placement.stage[other].replicas.front());
    if (one.pipeline == two.pipeline) continue;
    const Bytes copy = layer.tied_weights == Bytes{} ? layer.weights : layer.tied_weights;
    Bytes gradients = portion(layer.gradients, copy, layer.weights);
    if (reduces_in_every_backward(grid_.degrees())) {
      const int ranks = ranks_that_divide(grid_.degrees(), WeightKind::dense);
      gradients = {(gradients.count + ranks - 1) / ranks};
    }
    if (gradients == Bytes{} && states_gradients(model)) continue;
    Collective collective{CollectiveKind::all_reduce, gradients, {}, Dimension::pipeline};
    for (int t = 0; t < grid_.degrees().tensor; ++t) {
      const std::vector<int> here = grid_.holders(one.pipeline, t, -1);  // of all replicas
      const std::vector<int> there = grid_.holders(two.pipeline, t, -1);
      for (std::size_t i = 0; i < here.size(); ++i) {
        collective.groups.push_back({here[i], there[i]});
      }
    }
    const Time time = alone(planned(collective));
    for (StageCosts* const stage : {&costs.stage[first], &costs.stage[other]}) {
      add(stage->blocking.update, time);
      add(nth(stage->blocking_by, Dimension::pipeline).update, time);
      add(stage->update, time);
    }
  }
}

}  // namespace stageline
