#include "tools/planner/shape_loads.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "cost_models/state_bytes.hpp"
#include "cost_models/tied_weights.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/rates.hpp"
#include "tools/planner/space.hpp"

namespace stageline::planner {
namespace {

// What rounding may take off the time of one op of a stage.
constexpr double op_rounding = 1;

// The highest of both rates that any device has.
Rates fastest_of(const Cluster& cluster) {
  Rates fastest{0, 0};
  for (const Device& device : cluster.devices) {
    const Rates rates = rates_of(device);
    fastest = {std::max(fastest.matrix, rates.matrix), std::max(fastest.memory, rates.memory)};
  }
  return fastest;
}

double at(Rates rates, Time time, bool memory_bound) {
  if (rates == Rates{}) return static_cast<double>(time.count());
  const double scaled =
      static_cast<double>(time.count()) / (memory_bound ? rates.memory : rates.matrix);
  return std::max(0.0, scaled - op_rounding);
}

double state_of(const Layer& layer) {
  return static_cast<double>(layer.weights.count) + static_cast<double>(layer.gradients.count) +
         static_cast<double>(layer.optimizer_state.count);
}

}  // namespace

LayerBlocking least_blocking(RankedCluster& ranks, const Model& model) {
  return {ranks.least_blocking(model), ranks.least_blocking(model, hidden_in_pairs)};
}

LayerBlocking no_blocking(const Model& model) {
  const std::vector<BlockingTimes> none(model.layers.size());
  return {none, none};
}

ShapeLoads::ShapeLoads(const Case& asked) {
  const int pipelines = asked.pipelines();
  microbatches_ = asked.microbatches;
  if (asked.ranked) {
    add_layers(with_state(asked.model, asked.ranked->grid().degrees()),
               least_blocking(*asked.ranked, asked.model), asked.cluster);
    add_gathers(least_gathers(*asked.ranked, asked.model));
  } else {
    add_layers(asked.model, no_blocking(asked.model), asked.cluster);
  }
  add_devices(asked.cluster, pipelines, asked.ranked != nullptr);
  if (!asked.ranked) return;
  if (const auto& overlap = asked.ranked->devices().pair_overlap) {
    pair_overlap_ = std::max(pair_overlap_.value_or(0), *overlap);
  }
}

ShapeLoads::ShapeLoads(const Model& model, const Shape& shape, const LayerBlocking& blocking,
                       const Cluster& pipeline) {
  microbatches_ = shape.microbatches;
  Degrees beside = shape.degrees;
  beside.pipeline = 0;
  add_layers(beside.plain() ? model : with_state(model, shape.degrees), blocking, pipeline);
  add_devices(pipeline, 1, true);
}

void ShapeLoads::add_gathers(const std::vector<BlockingTimes>& gathers) {
  for (std::size_t l = 0; l < gathers.size(); ++l) {
    layer_[l].gather_forward = static_cast<double>(gathers[l].forward.count());
    layer_[l].gather_backward = static_cast<double>(gathers[l].backward.count());
  }
}

void ShapeLoads::add_devices(const Cluster& cluster, int pipelines, bool blocking) {
  const Rates fastest = fastest_of(cluster);
  devices_ = static_cast<int>(cluster.devices.size()) / pipelines;
  first_device_ = cluster.devices.front().name;
  pair_overlap_ = cluster.pair_overlap;
  // What blocks takes as long on slow devices.
  rates_ = blocking ? devices_ : 0;
  for (int d = 0; !blocking && d < devices_; ++d) {
    // As fast as the fastest of its replicas, in parts of the fastest of all.
    double most = 0;
    for (int r = 0; r < pipelines; ++r) {
      const Rates rates = rates_of(nth(cluster.devices, r * devices_ + d));
      most = std::max({most, rates.matrix / fastest.matrix, rates.memory / fastest.memory});
    }
    rates_ += most;
  }
}

void ShapeLoads::add_layers(const Model& model, const LayerBlocking& blocking,
                            const Cluster& cluster) {
  const Rates fastest = fastest_of(cluster);
  const Model once = held_once(model);
  cut_sequences_ = model.sample != "image";
  layer_.resize(model.layers.size());
  for (LayerLoad& layer : layer_) layer.reads_data = true;
  std::vector<double> fed(layer_.size());  // bytes that makers' stashes may have instead
  std::vector<bool> reads_before(layer_.size());
  for (const LayerEdge& edge : edges_of(model)) {
    if (edge.from + 1 == edge.to) reads_before[as_size(edge.to)] = true;
    nth(layer_, edge.to).reads_data = false;
    nth(fed, edge.to) += static_cast<double>(nth(model.layers, edge.from).output_kept.count);
  }
  const auto chained = std::count(reads_before.begin(), reads_before.end(), true);
  is_chain_ = as_size(chained) + 1 >= layer_.size();
  for (std::size_t l = 0; l < layer_.size(); ++l) {
    const Layer& layer = model.layers[l];
    LayerLoad& load = layer_[l];
    const auto time = [&](Time alone) { return at(fastest, alone, layer.memory_bound); };
    const auto blocked = [](Time alone) { return static_cast<double>(alone.count()); };
    const BlockingTimes& all = blocking.all[l];
    load.forward = time(layer.forward) + blocked(all.forward);
    load.input_grad = time(layer.input_grad) + blocked(all.input_grad);
    load.weight_grad = time(layer.weight_grad) + blocked(all.weight_grad);
    load.backward = time(layer.backward) + blocked(all.backward);
    load.recompute_full = time(whole_rebuilding_time(layer)) + blocked(all.recompute);
    const BlockingTimes& in_pairs = blocking.hidden_in_pairs[l];
    load.hidden_forward = blocked(in_pairs.forward);
    load.hidden_input_grad = blocked(in_pairs.input_grad);
    load.hidden_weight_grad = blocked(in_pairs.weight_grad);
    load.hidden_backward = blocked(in_pairs.backward);
    load.recompute_selective = time(layer.selective_forward);
    load.update = at(fastest, once.layers[l].update, true);
    load.state = state_of(once.layers[l]);
    // Every cut has the last layer in the last stage.
    if (l + 1 == layer_.size()) {
      load.copy_update = std::max(0.0, at(fastest, layer.update, true) - load.update);
      load.copy_state = state_of(layer) - load.state;
    }
    const double made = static_cast<double>(layer.stash_input_grad.count) +
                        static_cast<double>(layer.stash_weight_grad.count);
    load.stash = std::max(0.0, made - fed[l]);
    load.stash_kept = std::max(0.0, load.stash - static_cast<double>(layer.selective_stash.count));
    keeps_scores_ = keeps_scores_ || layer.selective_stash > Bytes{};
    load.workspace = static_cast<double>(
        std::min(layer.backward_workspace.count, layer.input_grad_workspace.count));
    names_.push_back(layer.name);
  }
}

namespace {

// The least share of a micro-batch's time that one of so many slices takes: attention of the first
// of equal ones to itself alone has that of 1 / chunks² of the pairs, and balanced ones take as
// long as each other. Given ones may be as short as can be.
double least_share(const ScheduleSpec& spec, int chunks) {
  const auto slices = spec.knobs.find("slices");
  const bool given =
      slices != spec.knobs.end() && slices->second != "even" && slices->second != "balanced";
  return given ? 0 : 1.0 / (static_cast<double>(chunks) * chunks);
}

}  // namespace

ShapeLoads::Family ShapeLoads::family_of(const ScheduleSpec& spec,
                                         const Recomputation& recomputation) const {
  const Scheduler& scheduler = *spec.scheduler;
  Family family;
  family.traits = traits_of(scheduler);
  family.flushed = scheduler.synchrony == Synchrony::synchronous;
  // No load says what is rebuilt of modules, or of a fused attention.
  const auto is_known = [&](const Recomputation::Part& part) {
    if (!part.everywhere() || part.first_blocks > 0 || !part.how.modules.empty()) return false;
    return part.how.rebuild != Rebuild::selective || keeps_scores_;
  };
  if (recomputation.parts.size() == 1 && is_known(recomputation.parts[0])) {
    family.rebuild = recomputation.parts[0].how.rebuild;
  } else {
    family.partly_rebuilt = !recomputation.parts.empty();
  }
  // A schedule's own: of all stages or of some.
  if (const auto own = spec.knobs.find("recompute");
      own != spec.knobs.end() && own->second != "never") {
    family.partly_rebuilt = true;
    if (own->second == "always" && recomputation.parts.empty()) {
      family.rebuild = Rebuild::full;
      family.partly_rebuilt = false;
    }
  }
  if (const auto chunks = spec.knobs.find("sequence_chunks"); chunks != spec.knobs.end()) {
    family.chunks = std::stoi(chunks->second);
    family.least_share = least_share(spec, family.chunks);
  }
  if (const auto overlap = spec.knobs.find("overlap"); overlap != spec.knobs.end()) {
    family.traits.pairs = family.traits.pairs || overlap->second != "none";
  }
  if (spec.given) {  // it may do anything
    family.partly_rebuilt = true;
    family.any_chunks = cuts_sequences(spec);
  }
  family.hides = hides_transfers(family.traits);
  if (scheduler.place == nullptr || !family.flushed) {
    family.stages = 1;
    family.most_replicas = devices_;
    family.apart = true;
    return family;
  }
  const Placement placement = scheduler.place(devices_, spec.knobs);
  family.stages = placement.stages();
  if (family.stages > layers()) {
    throw UsageError(fmt::format("{} on {} devices has {} stages, and the model {} layers",
                                 spelled(spec), devices_, family.stages, layers()));
  }
  family.straight = family.stages == devices_;
  family.copies = !shares_devices(placement.stage.back(), placement.stage.front());
  family.least_replicas = devices_;
  family.first_stage.assign(as_size(devices_), family.stages);
  for (int s = 0; s < family.stages; ++s) {
    const StagePlace& place = nth(placement.stage, s);
    const int replicas = static_cast<int>(place.replicas.size());
    family.most_replicas = std::max(family.most_replicas, replicas);
    family.least_replicas = std::min(family.least_replicas, replicas);
    family.apart = family.apart || place.apart();
    // What another device holds is on this one for its backward alone.
    family.partly_rebuilt = family.partly_rebuilt || !place.stash_homes.empty();
    for (const int device : place.replicas) {
      nth(family.first_stage, device) = std::min(nth(family.first_stage, device), s);
    }
    family.straight = family.straight && place.replicas == std::vector<int>{s};
  }
  return family;
}

bool ShapeLoads::hides_transfers(const ScheduleTraits& traits) const {
  return traits.pairs && !pair_overlap_;
}

// A pair takes no less than the compute of both its ops. R is in no pair.
ShapeLoads::Sums ShapeLoads::sums_of(const Family& family) const {
  Sums sums;
  sums.load.push_back(0);
  sums.way.push_back(0);
  const bool whole = family.traits.backward == ScheduleTraits::Backward::whole;
  const bool gathers = family.most_replicas == 1 && !family.apart;
  for (const LayerLoad& layer : layer_) {
    const double gather = gathers ? layer.gather_forward : 0;
    // Gathered in B or I; a stage may have no I of data.
    const double gather_back = gathers && (whole || !layer.reads_data) ? layer.gather_backward : 0;
    const double hides = family.hides ? 1 : 0;
    const double input_grad =
        layer.reads_data && family.apart ? 0 : layer.input_grad - hides * layer.hidden_input_grad;
    const double halves = input_grad + layer.weight_grad - hides * layer.hidden_weight_grad;
    const double in_one = layer.backward - hides * layer.hidden_backward;
    const double forward = layer.forward - hides * layer.hidden_forward;
    double backward = std::min(in_one, halves);
    double back = std::min(in_one, input_grad);
    if (whole) back = backward = in_one;
    if (family.traits.backward == ScheduleTraits::Backward::apart) {
      backward = halves;
      back = input_grad;
    }
    double again = 0;
    if (family.rebuild == Rebuild::selective) again = layer.recompute_selective;
    if (family.rebuild == Rebuild::full || family.rebuild == Rebuild::every) {
      again = layer.recompute_full + gather;
    }
    const double exposed = gather + gather_back;
    sums.load.push_back(sums.load.back() + forward + backward + again + exposed);
    sums.way.push_back(sums.way.back() + forward + back + exposed);
    sums.update += layer.update + (family.copies ? layer.copy_update : 0);
  }
  return sums;
}

ShapeLoads::Totals ShapeLoads::totals() const {
  Totals totals;
  double longest = 0;
  for (const LayerLoad& layer : layer_) {
    totals.forward += layer.forward;
    totals.backward += layer.backward;
    totals.recompute_full += layer.recompute_full;
    totals.recompute_selective += layer.recompute_selective;
    totals.update += layer.update + (devices_ > 1 ? layer.copy_update : 0);
    totals.state += layer.state + (devices_ > 1 ? layer.copy_state : 0);
    totals.stash += layer.stash;
    totals.stash_kept += layer.stash_kept;
    totals.stash_of_layer = std::max(totals.stash_of_layer, layer.stash);
    totals.workspace = std::max(totals.workspace, layer.workspace);
    longest = std::max(longest, layer.forward);
  }
  for (const LayerLoad& layer : layer_) totals.large_layers += 2 * layer.forward >= longest ? 1 : 0;
  return totals;
}

}  // namespace stageline::planner
