// What gathers of divided weights expose on any cut.
#include <algorithm>

#include "cost_models/tied_weights.hpp"
#include "sim/base/index.hpp"
#include "sim/rates.hpp"
#include "tools/planner/shape_loads.hpp"

namespace stageline::planner {

std::vector<BlockingTimes> least_gathers(RankedCluster& ranks, const Model& model) {
  const Degrees& degrees = ranks.grid().degrees();
  // Experts, and the replicas and parts of a sequence, are gathered among others. What a layer's
  // own collectives or a slow device hide besides is not known.
  const std::vector<Device>& devices = ranks.ranks().devices;
  const bool slow = std::any_of(devices.begin(), devices.end(), [](const Device& device) {
    const Rates rates = rates_of(device);
    return rates.matrix < 1 || rates.memory < 1;
  });
  const bool known = degrees.zero == Zero::weights && reduces_in_every_backward(degrees) &&
                     shard_groups(degrees) == 1 && degrees.data > 1 && degrees.context == 1 &&
                     degrees.tensor == 1 && degrees.expert_width() == 1 && ranks.replicas() == 1 &&
                     !slow;
  if (!known) return {};
  // The same collectives as if they blocked: gathers in F, reductions in I.
  // Gradients of tied weights are exchanged once where both their layers are on one device.
  const Model once = held_once(model);
  Model exchanged = model;
  std::vector<std::size_t> units;
  for (std::size_t l = 0; l < exchanged.layers.size(); ++l) {
    Layer& layer = exchanged.layers[l];
    layer.collectives.clear();
    if (layer.weights == Bytes{}) continue;
    units.push_back(l);
    LayerCollective gather;
    gather.kind = CollectiveKind::all_gather;
    gather.group = Dimension::data;
    gather.bytes = layer.weights;
    gather.forward = 1;
    LayerCollective scatter;
    scatter.kind = CollectiveKind::reduce_scatter;
    scatter.group = Dimension::data;
    scatter.bytes = once.layers[l].gradients;
    scatter.input_grad = 1;
    layer.collectives = {gather, scatter};
  }
  const std::vector<BlockingTimes> times = ranks.least_blocking(exchanged);
  std::vector<BlockingTimes> exposed(model.layers.size());
  // Every layer adds to the sum over a stage only where none would take from it.
  const bool all_exposed = std::all_of(units.begin(), units.end(), [&](std::size_t l) {
    return times[l].forward + times[l].input_grad >= model.layers[l].backward;
  });
  for (std::size_t u = 0; u < units.size(); ++u) {
    const std::size_t l = units[u];
    const Time gather = times[l].forward;
    const Time before = u == 0 ? Time{} : model.layers[units[u - 1]].forward;
    const Time behind = u + 1 == units.size() ? Time{} : model.layers[units[u + 1]].backward;
    exposed[l].forward = exposed[l].recompute = std::max(Time{}, gather - before);
    exposed[l].backward = exposed[l].input_grad =
        all_exposed ? gather + times[l].input_grad - model.layers[l].backward
                    : std::max(Time{}, gather - behind);
  }
  return exposed;
}

}  // namespace stageline::planner
