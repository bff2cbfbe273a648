#include "cost_models/spread_vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "cost_models/microbatch_fields.hpp"
#include "cost_models/tied_weights.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr int numbers_of_row = 3;

// The two ends have one neighbour each; between them may be skips.
void check_ends(const Model& model) {
  const std::vector<Layer>& layers = model.layers;
  if (layers.size() < 3 || layers.front().kind != "embedding" || layers.back().kind != "head") {
    throw UsageError(fmt::format(
        "{}: a vocabulary is divided where the first layer is of kind \"embedding\", the last of "
        "kind \"head\" and others are between, and of its {} layer{} the first is of kind \"{}\" "
        "and the last \"{}\"; take vocabulary=whole, or give the layers these kinds in the trace",
        model.name, layers.size(), layers.size() == 1 ? "" : "s", layers.front().kind,
        layers.back().kind));
  }
  const int last = static_cast<int>(layers.size()) - 1;
  for (const LayerEdge edge : edges_of(model)) {
    if ((edge.from != 0 || edge.to == 1) && (edge.to != last || edge.from == last - 1)) continue;
    throw UsageError(fmt::format(
        "{}: a vocabulary is divided where the embedding is read by the next layer alone and the "
        "head reads the one before alone, and layer {} (\"{}\") is read by layer {} (\"{}\"); take "
        "vocabulary=whole",
        model.name, edge.from, nth(layers, edge.from).name, edge.to, nth(layers, edge.to).name));
  }
}

struct Share {
  int number = 0;
  int of = 1;

  std::int64_t part(std::int64_t whole) const { return whole / of + (number < whole % of ? 1 : 0); }
  Time part(Time whole) const { return Time{part(whole.count())}; }
  Bytes part(Bytes whole) const { return Bytes{part(whole.count)}; }
  // `undivided` of it, as far as it is there, and a part of the rest.
  Bytes part_beside(Bytes undivided, Bytes whole) const {
    const Bytes all = std::min(undivided, whole);
    return all + part(whole - all);
  }
};

constexpr std::array<Bytes Layer::*, 5> workspaces{
    &Layer::forward_workspace, &Layer::backward_workspace, &Layer::input_grad_workspace,
    &Layer::weight_grad_workspace, &Layer::workspace};
constexpr std::array<Bytes Layer::*, 3> states{&Layer::weights, &Layer::gradients,
                                               &Layer::optimizer_state};

void add_embedding(Layer& share, const Layer& embedding, const Share& which) {
  for (const auto field : states) share.*field += which.part(embedding.*field);
  share.update += which.part(embedding.update);
  share.update_spread += which.part(embedding.update_spread);
  share.parameters += which.part(embedding.parameters);
  share.forward += embedding.forward;
  share.weight_grad += embedding.weight_grad;
  share.backward += embedding.backward;
  if (share.lone_weight_grad > Time{}) share.lone_weight_grad += embedding.weight_grad_alone();
  share.forward_flops += which.part(embedding.forward_flops);
  share.backward_flops += which.part(embedding.backward_flops);
  share.collectives.insert(share.collectives.end(), embedding.collectives.begin(),
                           embedding.collectives.end());
}

Layer share_of(const Layer& head, const Layer& embedding, Bytes hidden, const Share& which) {
  Layer share = head;
  share.name = fmt::format("{}.{}", head.name, which.number);
  const bool is_sum = head.backward == head.input_grad + head.weight_grad;
  for (const auto field : microbatch_times) share.*field = which.part(head.*field);
  if (is_sum) share.backward = share.input_grad + share.weight_grad;
  for (const auto field : microbatch_sizes) share.*field = which.part(head.*field);
  for (const auto field : workspaces) share.*field = which.part_beside(hidden, head.*field);
  share.stash_weight_grad = which.part_beside(hidden, head.stash_weight_grad);
  share.input_kept = Bytes{};
  share.output = std::min(Bytes{numbers_of_row * head.output.count}, hidden);
  for (const auto field : microbatch_flops) share.*field = which.part(head.*field);
  for (const auto field : states) share.*field = which.part(head.*field);
  share.update = which.part(head.update);
  share.update_spread = which.part(head.update_spread);
  share.parameters = which.part(head.parameters);
  share.shared_weights = Bytes{};
  share.modules.clear();
  add_embedding(share, embedding, which);
  return share;
}

Layer loss_layer(Bytes output) {
  Layer loss;
  loss.name = loss.kind = "loss";
  loss.recompute = Time{1};  // as the head's
  loss.output = output;
  return loss;
}

Bytes in_ring(Bytes bytes, std::int64_t times, std::int64_t over) {
  return portion(bytes, Bytes{times}, Bytes{over});
}

}  // namespace

Model spread_vocabulary(const Model& model, int shares, bool loss) {
  check_ends(model);
  const Model once = held_once(model);
  const Layer& embedding = once.layers.front();
  const Layer& head = once.layers.back();
  Model spread = once;
  spread.whole = {};
  spread.layers.assign(once.layers.begin() + 1, once.layers.end() - 1);
  spread.layers.front().stash_input_grad += embedding.stash_input_grad;
  spread.layers.front().stash_weight_grad += embedding.stash_weight_grad;
  const int between = static_cast<int>(spread.layers.size());
  spread.edges.clear();
  for (const LayerEdge edge : edges_of(once)) {
    if (edge.from == 0 || edge.to > between) continue;
    spread.edges.push_back({edge.from - 1, edge.to - 1});
  }
  const Bytes hidden = spread.layers.back().output;
  for (int i = 0; i < shares; ++i) {
    spread.layers.push_back(share_of(head, embedding, hidden, {i, shares}));
    spread.edges.push_back({between - 1, between + i});
    if (loss) spread.edges.push_back({between + i, between + shares});
  }
  if (loss) spread.layers.push_back(loss_layer(head.output));
  std::sort(spread.edges.begin(), spread.edges.end());
  return spread;
}

void exchange_in_rings(Costs& costs, int shares) {
  if (shares < 2) return;
  const std::int64_t others = shares - 1;
  for (EdgeCosts& edge : costs.edges) {
    const int share = edge.edge.to - shares;
    if (edge.edge.from != others || share < 0 || share >= others) continue;
    edge.activation = in_ring(edge.activation, 1, others);
    edge.activation_kept = in_ring(edge.activation_kept, 1, others);
    edge.gradient = in_ring(edge.gradient, 2, shares);
  }
}

}  // namespace stageline
