#include "tools/inputs/layer_groups.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

void add_collectives(Layer& group, const Layer& layer) {
  for (const LayerCollective& more : layer.collectives) {
    const auto same = std::find_if(
        group.collectives.begin(), group.collectives.end(), [&](const LayerCollective& one) {
          return one.kind == more.kind && one.group == more.group && one.bytes == more.bytes &&
                 one.routing == more.routing && one.hidden == more.hidden && one.use == more.use;
        });
    if (same == group.collectives.end()) {
      group.collectives.push_back(more);
      continue;
    }
    same->forward += more.forward;
    same->input_grad += more.input_grad;
    same->weight_grad += more.weight_grad;
    same->forward_beside += more.forward_beside;
    same->backward_beside += more.backward_beside;
  }
}

void add_modules(Layer& group, const Layer& layer) {
  for (const LayerModule& more : layer.modules) {
    const auto same = std::find_if(group.modules.begin(), group.modules.end(),
                                   [&](const LayerModule& one) { return one.name == more.name; });
    if (same == group.modules.end()) {
      group.modules.push_back(more);
      continue;
    }
    same->forward += more.forward;
    same->stash += more.stash;
    same->flops += more.flops;
    same->collectives.insert(same->collectives.end(), more.collectives.begin(),
                             more.collectives.end());
  }
}

// The layer runs behind those of the group.
void append(Layer& group, const Layer& layer) {
  // Before the forwards are added up: 0 is as long as F.
  if (group.recompute != Time{} || layer.recompute != Time{}) {
    const auto again = [](const Layer& one) {
      return one.recompute == Time{} ? one.forward : one.recompute;
    };
    group.recompute = again(group) + again(layer);
  }
  group.lone_weight_grad = group.weight_grad_alone() + layer.backward;
  // It follows the rate that most of its time follows.
  if (layer.memory_bound != group.memory_bound &&
      layer.forward + layer.backward > group.forward + group.backward) {
    group.memory_bound = layer.memory_bound;
  }
  for (Time Layer::*const time :
       {&Layer::forward, &Layer::input_grad, &Layer::weight_grad, &Layer::backward, &Layer::update,
        &Layer::selective_forward, &Layer::forward_spread, &Layer::input_grad_spread,
        &Layer::weight_grad_spread, &Layer::backward_spread, &Layer::update_spread}) {
    group.*time += layer.*time;
  }
  for (Bytes Layer::*const bytes :
       {&Layer::weights, &Layer::tied_weights, &Layer::gradients, &Layer::optimizer_state,
        &Layer::stash_input_grad, &Layer::stash_weight_grad, &Layer::stash_gradient,
        &Layer::selective_stash, &Layer::keys_values, &Layer::earlier_gradients}) {
    group.*bytes += layer.*bytes;
  }
  for (Bytes Layer::*const bytes :
       {&Layer::forward_workspace, &Layer::backward_workspace, &Layer::input_grad_workspace,
        &Layer::weight_grad_workspace, &Layer::workspace}) {
    group.*bytes = std::max(group.*bytes, layer.*bytes);
  }
  for (std::int64_t Layer::*const count :
       {&Layer::parameters, &Layer::forward_flops, &Layer::backward_flops, &Layer::selective_flops,
        &Layer::expert_parameters}) {
    group.*count += layer.*count;
  }
  group.kind.clear();
  group.output = layer.output;
  group.output_kept = layer.output_kept;
  add_collectives(group, layer);
  add_modules(group, layer);
}

// Joins the groups by tensors, each as large as all that leave its maker for other groups.
void connect(Model& groups, const std::vector<Layer>& layers, const std::vector<LayerEdge>& edges,
             const std::vector<int>& group_of) {
  std::vector<bool> leaves(layers.size());
  for (const LayerEdge& edge : edges) {
    const LayerEdge between{nth(group_of, edge.from), nth(group_of, edge.to)};
    if (between.from == between.to) continue;
    groups.edges.push_back(between);
    leaves[as_size(edge.from)] = true;
  }
  std::sort(groups.edges.begin(), groups.edges.end());
  groups.edges.erase(std::unique(groups.edges.begin(), groups.edges.end()), groups.edges.end());
  for (Layer& group : groups.layers) {
    group.output = group.input_kept = group.output_kept = Bytes{};  // kept of which: unknown
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (leaves[l]) nth(groups.layers, group_of[l]).output += layers[l].output;
  }
}

}  // namespace

int first_of_group(int layers, int groups, int group) {
  return static_cast<int>(std::int64_t{layers} * group / groups);
}

Model in_groups(Model model, int most) {
  const int count = static_cast<int>(model.layers.size());
  if (count <= most) return model;
  const std::vector<Layer> layers = std::exchange(model.layers, {});
  const std::vector<LayerEdge> edges = std::exchange(model.edges, {});
  std::vector<int> group_of;
  for (int g = 0; g < most; ++g) {
    const int first = first_of_group(count, most, g);
    const int end = first_of_group(count, most, g + 1);
    Layer& group = model.layers.emplace_back(nth(layers, first));
    for (int l = first + 1; l < end; ++l) append(group, nth(layers, l));
    group_of.insert(group_of.end(), as_size(end - first), g);
  }
  if (!edges.empty()) connect(model, layers, edges, group_of);
  return model;
}

std::string in_layers(const std::vector<int>& last_groups, int layers, int groups) {
  std::string text;
  int first = 0;
  for (const int last : last_groups) {
    const int next = first_of_group(layers, groups, last + 1);
    text += fmt::format("{}-{},", first, next - 1);
    first = next;
  }
  return text + fmt::format("{}-", first);
}

Model GroupedModels::model(int batch, const Sharding& sharding, const std::function<Model()>& open,
                           const SequenceSlice& slice) {
  const Key key(batch, sharding.tensor, sharding.context, sharding.expert, sharding.sequence,
                sharding.expert_tensor_ranks(), slice);
  const std::lock_guard<std::mutex> lock(access_);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_.emplace(key, in_groups(open(), most_)).first->second;
}

}  // namespace stageline
