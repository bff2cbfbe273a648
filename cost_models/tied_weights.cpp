#include "cost_models/tied_weights.hpp"

#include <algorithm>
#include <cstdint>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

bool is_tied(const Layer& layer) { return layer.tied_weights != Bytes{}; }

Bytes own_weights(const Layer& layer) { return layer.weights - layer.tied_weights; }

// The part of an update of all weights.
Time own_part(const Layer& layer, Time update) {
  return *scaled(update, own_weights(layer).count, layer.weights.count);
}

void leave_out_copy(Layer& layer) {
  const Bytes own = own_weights(layer);
  layer.update = own_part(layer, layer.update);
  layer.update_spread = own_part(layer, layer.update_spread);
  layer.gradients = portion(layer.gradients, own, layer.weights);
  layer.optimizer_state = portion(layer.optimizer_state, own, layer.weights);
  layer.shared_weights += layer.tied_weights;
  layer.weights = own;
  layer.tied_weights = Bytes{};
}

// The first layer behind an encoder owns the weights that others have.
bool on_devices_of_first(const Model& model, const Partition& partition, const Placement& placement,
                         std::size_t layer) {
  return shares_devices(nth(placement.stage, partition.stage_of[layer]),
                        nth(placement.stage, nth(partition.stage_of, model.encoder.count)));
}

}  // namespace

bool has_tied_weights(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), is_tied);
}

Bytes portion(Bytes bytes, Bytes part, Bytes whole) {
  __extension__ using Wide = __int128;
  return {static_cast<std::int64_t>(Wide{bytes.count} * part.count / whole.count)};
}

Model held_once(Model model) {
  for (Layer& layer : model.layers) {
    if (is_tied(layer)) leave_out_copy(layer);
  }
  return model;
}

Time update_once(const Model& model) {
  Time sum{};
  for (const Layer& layer : model.layers) {
    sum += is_tied(layer) ? own_part(layer, layer.update) : layer.update;
  }
  return sum;
}

bool shares_devices(const StagePlace& stage, const StagePlace& owner) {
  return std::all_of(all_roles.begin(), all_roles.end(), [&](Role role) {
    const std::vector<int>& owners = owner.homes(role);
    const std::vector<int>& devices = stage.homes(role);
    return std::all_of(devices.begin(), devices.end(), [&](int device) {
      return std::find(owners.begin(), owners.end(), device) != owners.end();
    });
  });
}

Model held_on(Model model, const Partition& partition, const Placement& placement) {
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    Layer& layer = model.layers[l];
    if (is_tied(layer) && on_devices_of_first(model, partition, placement, l))
      leave_out_copy(layer);
  }
  return model;
}

bool holds_copies(const Model& model, const Partition& partition, const Placement& placement) {
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    if (is_tied(model.layers[l]) && !on_devices_of_first(model, partition, placement, l))
      return true;
  }
  return false;
}

}  // namespace stageline
