#include "cost_models/stage_costs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cost_models/handover.hpp"
#include "cost_models/memory/op_memory.hpp"
#include "cost_models/network/chips.hpp"
#include "cost_models/network/dispatch.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/rates.hpp"

namespace stageline {
namespace {

[[noreturn]] void too_large(std::size_t stage, std::string_view what) {
  throw UsageError(
      fmt::format("stage {}: the sum of its layers' {} does not fit in 64 bits", stage, what));
}

// Adds without silent overflow.
void add_checked(std::int64_t& sum, std::int64_t part, std::size_t stage, std::string_view what) {
  if (__builtin_add_overflow(sum, part, &sum)) too_large(stage, what);
}
void add_checked(Time& sum, Time part, std::size_t stage, std::string_view what) {
  std::int64_t count = sum.count();
  add_checked(count, part.count(), stage, what);
  sum = Time{count};
}
void add_checked(Bytes& sum, Bytes part, std::size_t stage, std::string_view what) {
  add_checked(sum.count, part.count, stage, what);
}

// What the layer at `place` of its stage adds to a W that no device runs beside the whole of I. It
// makes the gradients inside the stage, too: above the lowest layer, I and W.
Time weight_grad_alone(const Layer& layer, int place) {
  return place == 0 ? layer.weight_grad_alone() : layer.backward;
}

// `place`: of the layer in its stage.
void add_layer(StageCosts& sum, const Layer& layer, const StageRecomputation& recomputed, int place,
               std::size_t stage, bool alone) {
  add_checked(sum.forward, layer.forward, stage, "forward times");
  add_checked(sum.input_grad, layer.input_grad, stage, "input gradient times");
  add_checked(sum.weight_grad, alone ? weight_grad_alone(layer, place) : layer.weight_grad, stage,
              "weight gradient times");
  add_checked(sum.backward, layer.backward, stage, "backward times");
  add_checked(sum.update, layer.update, stage, "update times");
  if (is_rebuilt(recomputed, place)) {
    add_checked(sum.recompute, rebuilding_time(layer, recomputed, place), stage,
                "recomputation times");
  }
  add_checked(sum.weights, layer.weights, stage, "weights");
  add_checked(sum.gradients, layer.gradients, stage, "gradients");
  add_checked(sum.optimizer_state, layer.optimizer_state, stage, "optimizer state");
  add_checked(sum.stash_input_grad, layer.stash_input_grad, stage, "stash");
  add_checked(sum.stash_weight_grad, layer.stash_weight_grad, stage, "stash");
  add_checked(sum.stash_gradient, layer.stash_gradient, stage, "stash");
  add_checked(sum.earlier_gradients, layer.earlier_gradients, stage, "gradients");
}

// Keeps until W a tensor of the stash that only I has read so far. What I frees makes room for the
// output gradients that it keeps: where it frees less, these show in `stash_gradient`.
void keep_until_weight_grad(StageCosts& stage, Bytes tensor) {
  const Bytes had_room = std::min(tensor, stage.stash_input_grad);
  stage.stash_input_grad = stage.stash_input_grad - had_room;
  stage.stash_weight_grad += had_room;
  stage.stash_gradient += tensor - had_room;
}
void take_out(StageCosts& stage, Bytes tensor) {
  const Bytes had_room = std::min(tensor, stage.stash_input_grad);
  stage.stash_input_grad = stage.stash_input_grad - had_room;
  stage.stash_weight_grad = stage.stash_weight_grad - (tensor - had_room);
  stage.stash_gradient += tensor - had_room;
}

// By layer: whether it reads no other layer's output, and so has no I.
std::vector<bool> data_readers(const Model& model) {
  std::vector<bool> reads_data(model.layers.size(), true);
  for (const LayerEdge& edge : edges_of(model)) nth(reads_data, edge.to) = false;
  return reads_data;
}

// A tensor is in the stash of the first layer that reads it. If a cut parts that reader from others
// that keep the tensor, their stages hold it as well. If only its maker keeps it, the reader's
// stage does not. A maker that reads the data runs all its backward in W and keeps it until then.
// The same is added to `layers`, by layer.
void add_parted(std::vector<StageCosts>& stages, LayerStash& layers, const Model& model,
                const Partition& partition) {
  std::vector<std::vector<std::size_t>> readers(model.layers.size());  // of its output, ascending
  std::vector<std::size_t> input(model.layers.size());                 // the last of those it reads
  for (const LayerEdge& edge : edges_of(model)) {
    std::size_t& last = nth(input, edge.to);
    last = std::max(last, as_size(edge.from));
    nth(readers, edge.from).push_back(as_size(edge.to));
  }
  const std::vector<bool> reads_data = data_readers(model);
  const auto stage_of = [&](std::size_t layer) { return as_size(partition.stage_of[layer]); };
  for (std::size_t maker = 0; maker < readers.size(); ++maker) {
    if (readers[maker].empty()) continue;
    std::sort(readers[maker].begin(), readers[maker].end());
    const Bytes kept = model.layers[maker].output_kept;
    const std::size_t at_maker = stage_of(maker);
    const std::size_t at_first = stage_of(readers[maker].front());
    const auto keeps = [&](std::size_t reader) {
      return input[reader] == maker && model.layers[reader].input_kept > Bytes{};
    };
    bool read_by_weight_grad = false;  // of some layer
    bool kept_at_first = kept == Bytes{} || at_first == at_maker;
    for (const std::size_t reader : readers[maker]) {
      if (!keeps(reader)) continue;
      if (model.layers[reader].weight_grad > Time{}) read_by_weight_grad = true;
      if (stage_of(reader) == at_first) kept_at_first = true;
    }
    std::vector<std::size_t> holding{at_first};
    const auto hold = [&](std::size_t layer, Bytes StageCosts::*stash, Bytes bytes) {
      const std::size_t stage = stage_of(layer);
      if (bytes == Bytes{}) return;
      if (std::find(holding.begin(), holding.end(), stage) != holding.end()) return;
      holding.push_back(stage);
      add_checked(stages[stage].*stash, bytes, stage, "stash");
      layers.made[layer] += bytes;
      if (stash == &StageCosts::stash_weight_grad) layers.left[layer] += bytes;
    };
    for (const std::size_t reader : readers[maker]) {
      if (!keeps(reader)) continue;
      hold(reader, &StageCosts::stash_weight_grad, model.layers[reader].input_kept);
    }
    hold(maker, reads_data[maker] ? &StageCosts::stash_weight_grad : &StageCosts::stash_input_grad,
         kept);
    if (reads_data[maker] && at_maker == at_first && !read_by_weight_grad) {
      keep_until_weight_grad(stages[at_maker], kept);
      layers.left[maker] += kept;
    }
    if (!kept_at_first && stages[at_first].stash() >= kept) {
      take_out(stages[at_first], kept);
      layers.made[readers[maker].front()] -= kept;
    }
  }
}

const Device& device_called(int device, std::size_t stage, const Cluster& cluster) {
  if (device < 0 || as_size(device) >= cluster.devices.size()) {
    throw UsageError(fmt::format("stage {} is placed on device {}, but the cluster has {} devices",
                                 stage, device, cluster.devices.size()));
  }
  const Device& found = nth(cluster.devices, device);
  if (!(found.rate > 0) || !std::isfinite(found.rate)) {
    throw UsageError(fmt::format("device {} has rate {:g}; a rate is a positive number", found.name,
                                 found.rate));
  }
  if (!(found.memory_rate >= 0) || !std::isfinite(found.memory_rate)) {
    throw UsageError(
        fmt::format("device {} has memory rate {:g}; it is a positive number, or 0 for that of its "
                    "arithmetic",
                    found.name, found.memory_rate));
  }
  return found;
}

// Whether the devices that share a role of a stage differ in speed. Then a stage has no time of its
// own: all stages get that of the fastest device, and every device its pace.
bool share_unequally(const Placement& placement, const Cluster& cluster) {
  bool unequal = false;
  for (std::size_t s = 0; s < placement.stage.size(); ++s) {
    const StagePlace& place = placement.stage[s];
    for (const std::vector<int>& devices :
         {place.replicas, place.homes(Role::input_grad), place.homes(Role::weight_grad)}) {
      for (const int device : devices) {
        unequal = unequal || rates_of(device_called(device, s, cluster)) !=
                                 rates_of(device_called(devices.front(), s, cluster));
      }
    }
  }
  return unequal;
}

Rates fastest_rates(const Cluster& cluster) {
  Rates fastest{0, 0};
  for (const Device& device : cluster.devices) {
    if (device.rate > fastest.matrix) fastest = rates_of(device);
  }
  return fastest;
}

// By device, how many times as long as the fastest one it takes. That is one number only where both
// of its rates are behind by the same factor.
std::vector<double> paces(const Cluster& cluster, Rates fastest) {
  std::vector<double> pace;
  for (const Device& device : cluster.devices) {
    const Rates rates = rates_of(device);
    pace.push_back(fastest.matrix / rates.matrix);
    if (std::abs(fastest.memory / rates.memory - pace.back()) <= 1e-9 * pace.back()) continue;
    throw UsageError(fmt::format(
        "replicas of a stage must be slower by one factor in rate and memory rate, and {} has {:g} and {:g} where the fastest has {:g} and {:g}; give each stage one device, or equal ones",
        device.name, rates.matrix, rates.memory, fastest.matrix, fastest.memory));
  }
  return pace;
}

// The only rounding. A rate of 1 leaves the sum as it is, however long.
Time at_rate(Time time, Time bound_by_memory, Rates rates, std::size_t stage) {
  const double scaled = picoseconds({time, bound_by_memory}, rates);
  if (!(scaled <= static_cast<double>(longest_input.count()))) {
    throw UsageError(
        fmt::format("stage {} takes {:.3g} s a micro-batch; at most {:.0f} s are allowed", stage,
                    scaled / 1e12, to_seconds(longest_input)));
  }
  return at_rates({time, bound_by_memory}, rates);
}

// The share of a device's multiprocessors that sending tokens to experts takes; 0 where no tokens
// are sent, or the chip is none of chips().
double dispatch_share(const Model& model, const Cluster& cluster) {
  const int kind = cluster.devices.empty() ? -1 : cluster.devices.front().kind;
  const Chip* const chip = kind < 0 ? nullptr : chip_of(nth(cluster.kinds, kind).name);
  if (chip == nullptr) return 0;
  for (const Layer& layer : model.layers) {
    for (const LayerCollective& one : layer.collectives) {
      if (one.kind != CollectiveKind::all_to_all || one.group != Dimension::expert) continue;
      const std::string_view word = one.routing.dispatcher.empty()
                                        ? plain_dispatch
                                        : std::string_view(one.routing.dispatcher);
      return 1.0 * dispatch_multiprocessors(word, chip->generation, model.sharding.expert) /
             multiprocessors(chip->generation);
    }
  }
  return 0;
}

}  // namespace

Costs stage_costs(const Model& model, const Partition& partition, const Placement& placement,
                  const Cluster& cluster, const Recomputation& recomputed) {
  check(partition, model);
  if (partition.stages != placement.stages() || partition.stages < 1 ||
      partition.stages > max_stages) {
    throw UsageError(fmt::format(
        "the partition has {} stages and the placement {}; they must agree, from 1 to {}",
        partition.stages, placement.stages(), max_stages));
  }
  std::vector<StageRecomputation> rebuilt = by_stage(recomputed, model, partition);
  rebuilt.resize(placement.stage.size());
  Costs costs;
  costs.stage.resize(placement.stage.size());
  std::vector<StageCosts> by_memory(costs.stage.size());  // of layers bound by memory, the times
  Bytes outputs{};  // of all layers: what stage_flows adds up is no more
  std::vector<int> layers_of(costs.stage.size());  // so far
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const auto stage = as_size(partition.stage_of[l]);
    const int place = layers_of[stage]++;
    const bool alone = placement.stage[stage].weight_grad_apart();
    add_layer(costs.stage[stage], model.layers[l], rebuilt[stage], place, stage, alone);
    if (model.layers[l].memory_bound) {
      add_layer(by_memory[stage], model.layers[l], rebuilt[stage], place, stage, alone);
    }
    add_checked(outputs, model.layers[l].output, stage, "outputs");
  }
  LayerStash layers;
  for (const Layer& layer : model.layers) {
    layers.made.push_back(layer.stash_input_grad + layer.stash_weight_grad);
    layers.left.push_back(layer.stash_weight_grad + layer.stash_gradient);
  }
  add_parted(costs.stage, layers, model, partition);
  for (const StageFlow& flow : stage_flows(partition, model)) {
    const bool to_frozen =
        model.encoder.frozen && flow.edge.from < nth(partition.stage_of, model.encoder.count);
    costs.edges.push_back({flow.edge, flow.bytes, to_frozen ? Bytes{} : flow.bytes, Bytes{}});
    add_checked(costs.stage[flow.edge.to].boundary, flow.bytes, flow.edge.to, "inputs");
  }
  add_checked(costs.stage.front().boundary, model.input, 0, "inputs");
  add_op_memory(costs.stage, costs.edges, model, partition, layers, rebuilt);
  for (std::size_t s = 0; s < costs.stage.size(); ++s) {
    if (!placement.stage[s].replicas.empty()) continue;
    throw UsageError(fmt::format("stage {} is placed on no device", s));
  }
  const bool unequal = share_unequally(placement, cluster);
  const Rates fastest = fastest_rates(cluster);
  for (std::size_t s = 0; s < costs.stage.size(); ++s) {
    const StagePlace& place = placement.stage[s];
    const auto rate_of = [&](const std::vector<int>& devices) {
      return unequal ? fastest : rates_of(device_called(devices.front(), s, cluster));
    };
    const Rates rate = rate_of(place.replicas);
    const Rates input_grad_rate = rate_of(place.homes(Role::input_grad));
    const Rates weight_grad_rate = rate_of(place.homes(Role::weight_grad));
    StageCosts& stage = costs.stage[s];
    const StageCosts& memory = by_memory[s];
    stage.forward = at_rate(stage.forward, memory.forward, rate, s);
    stage.recompute = at_rate(stage.recompute, memory.recompute, rate, s);
    stage.input_grad = at_rate(stage.input_grad, memory.input_grad, input_grad_rate, s);
    stage.weight_grad = at_rate(stage.weight_grad, memory.weight_grad, weight_grad_rate, s);
    stage.backward = at_rate(stage.backward, memory.backward, weight_grad_rate, s);
    stage.update = at_rate(stage.update, stage.update, weight_grad_rate, s);
    const auto overhead = [&](const std::vector<int>& devices) {
      const std::vector<int>& at = devices.empty() ? place.replicas : devices;
      return nth(cluster.devices, at.front()).op_overhead;
    };
    for (Time* const time : {&stage.forward, &stage.recompute})
      add_checked(*time, overhead({}), s, "times");
    add_checked(stage.input_grad, overhead(place.input_grad), s, "times");
    for (Time* const time : {&stage.weight_grad, &stage.backward, &stage.update}) {
      add_checked(*time, overhead(place.weight_grad), s, "times");
    }
  }
  add_handover(costs, placement, cluster.handover);
  costs.network = network_of(cluster);
  costs.pair_overlap = cluster.pair_overlap;
  costs.transfer_share = dispatch_share(model, cluster);
  costs.slowdown = cluster.interference;
  costs.overlap_slowdown = cluster.overlap_slowdown;
  costs.message_slowdown = cluster.message_slowdown.value_or(cluster.overlap_slowdown);
  costs.transfer_slowdown = cluster.transfer_slowdown;
  if (unequal) costs.pace = paces(cluster, fastest);
  costs.bytes_known = model.bytes_known;
  return costs;
}

}  // namespace stageline
