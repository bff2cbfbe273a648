#include "cost_models/encoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/microbatch_fields.hpp"
#include "cost_models/state_bytes.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

void check_divided(const Model& encoder, const Degrees& degrees) {
  const Sharding& has = encoder.sharding;
  const int asked = degrees.tensor_of_encoder();
  if (has.tensor != asked) {
    throw UsageError(fmt::format(
        "the layers of the encoder \"{}\" are those of one rank of tp {}, and --encoder-tp is {}; "
        "take a trace that states \"sharding\": {{\"tensor\": {}}}, or --encoder-tp {}",
        encoder.name, has.tensor, asked, asked, has.tensor));
  }
  if (has.context == 1 && has.expert == 1 && !has.folded()) return;
  throw UsageError(fmt::format(
      "the encoder \"{}\" is divided by cp {} and ep {}, and an encoder's ranks are tensor- and "
      "data-parallel; take one whose layers are whole but for tp",
      encoder.name, has.context, has.expert));
}

void check_sequences(const Model& encoder, const Model& model) {
  const Sharding& one = encoder.sharding;
  const Sharding& other = model.sharding;
  if (one.tensor > 1 && other.tensor > 1 && one.sequence != other.sequence) {
    throw UsageError(fmt::format(
        "{} has sequence parallelism, and {} has none; take --sequence-parallel with both, or "
        "with neither",
        one.sequence ? encoder.name : model.name, one.sequence ? model.name : encoder.name));
  }
  if (!one.sequence || one.tensor <= other.tensor) return;
  throw UsageError(fmt::format(
      "with sequence parallelism an encoder of --encoder-tp {} before a model of --tp {} is not "
      "modelled: what each model's rank receives is more than an encoder's rank sends; take "
      "--encoder-tp {} or fewer",
      one.tensor, other.tensor, other.tensor));
}

// A recipe and ZeRO count by one number of bytes a parameter.
void check_bytes(const Model& encoder, const Model& model, const Degrees& degrees) {
  if (encoder.bytes_known != model.bytes_known) {
    throw UsageError(fmt::format(
        "the bytes of \"{}\" are not known, and those of \"{}\" are; take traces that both state them",
        encoder.bytes_known ? model.name : encoder.name,
        encoder.bytes_known ? encoder.name : model.name));
  }
  if (degrees.zero == Zero::none && degrees.precision.name.empty()) return;
  const double one = bytes_per_parameter(encoder);
  const double other = bytes_per_parameter(model);
  if (std::abs(one - other) <= 0.01 * std::max(one, other)) return;
  throw UsageError(fmt::format(
      "the weights of the encoder take {:.3g} bytes a parameter, and the model's {:.3g}; --zero and "
      "--precision count both alike: take traces of one number format that count parameters",
      one, other));
}

Provenance with_provenance_of(const Provenance& encoder, Provenance all, const std::string& name) {
  if (encoder.origin != all.origin) all.origin = std::max(encoder.origin, all.origin);
  if (encoder.method != all.method) {
    all.method = fmt::format("{}; its encoder: {}", all.method, encoder.method);
  }
  for (const std::string& note : encoder.notes) {
    const bool known = std::find(all.notes.begin(), all.notes.end(), note) != all.notes.end();
    if (!known) all.notes.push_back(fmt::format("{}: {}", name, note));
  }
  if (encoder.device != all.device) {
    all.notes.push_back(fmt::format("the encoder's times are those of {}, and the model's of {}",
                                    encoder.device.empty() ? "an unknown device" : encoder.device,
                                    all.device.empty() ? "an unknown one" : all.device));
  }
  return all;
}

// By layer, whether no other one reads its output.
std::vector<bool> ends_of(const Model& model) {
  std::vector<bool> is_end(model.layers.size(), true);
  for (const LayerEdge& edge : edges_of(model)) nth(is_end, edge.from) = false;
  return is_end;
}

// A language model's layers stand for an encoder's, without its head.
void leave_out_head(Model& encoder) {
  if (encoder.layers.size() < 2 || encoder.layers.back().name != "head") return;
  const int head = static_cast<int>(encoder.layers.size()) - 1;
  encoder.edges = edges_of(encoder);
  std::erase_if(encoder.edges, [&](const LayerEdge& edge) { return edge.to == head; });
  encoder.layers.pop_back();
  encoder.parameters = 0;
  encoder.provenance.notes.emplace_back("its head is left out");
}

// What is left of a layer that has no backward and no update.
void freeze(Layer& layer) {
  const Layer kept = layer;
  for (const auto field : microbatch_times) layer.*field = Time{};
  layer.forward = kept.forward;
  layer.forward_spread = kept.forward_spread;
  layer.update = layer.update_spread = Time{};
  layer.gradients = layer.optimizer_state = Bytes{};
  for (const auto field : microbatch_sizes) layer.*field = Bytes{};
  layer.forward_workspace = std::max(kept.forward_workspace, kept.workspace);
  layer.output = kept.output;
  layer.keys_values = layer.earlier_gradients = Bytes{};
  layer.backward_flops = layer.selective_flops = 0;
  layer.modules.clear();
  for (LayerCollective& one : layer.collectives) {
    one.input_grad = one.weight_grad = 0;
    one.backward_beside = Time{};
  }
}

}  // namespace

Model with_encoder(Model encoder, Model model, const Degrees& degrees, bool frozen) {
  check_divided(encoder, degrees);
  check_sequences(encoder, model);
  check_bytes(encoder, model, degrees);
  leave_out_head(encoder);
  const auto count = static_cast<int>(encoder.layers.size());
  const std::vector<bool> ends = ends_of(encoder);
  std::vector<LayerEdge> edges = edges_of(encoder);
  for (int l = 0; l < count; ++l) {
    if (nth(ends, l)) edges.push_back({l, count});
  }
  for (const LayerEdge& edge : edges_of(model)) {
    edges.push_back({edge.from + count, edge.to + count});
  }
  std::sort(edges.begin(), edges.end());
  model.provenance =
      with_provenance_of(encoder.provenance, std::move(model.provenance), encoder.name);
  model.provenance.notes.push_back(fmt::format(
      "before each micro-batch the encoder {} takes {}, and is {}; tokens are the model's",
      encoder.name,
      encoder.batch > 0 ? fmt::format("its {} {}{}", encoder.batch,
                                      encoder.sample.empty() ? "sample" : encoder.sample,
                                      encoder.batch == 1 ? "" : "s")
                        : "one of its own",
      frozen
          ? "frozen: its backward is an empty op of the schedule, and the gradient that it would "
            "be sent a message without bytes"
          : "trained with the model"));
  for (Layer& layer : encoder.layers) layer.name = "encoder." + layer.name;
  if (frozen) std::for_each(encoder.layers.begin(), encoder.layers.end(), freeze);
  model.layers.insert(model.layers.begin(), std::make_move_iterator(encoder.layers.begin()),
                      std::make_move_iterator(encoder.layers.end()));
  model.edges = std::move(edges);
  model.name = fmt::format("{} + {}", encoder.name, model.name);
  model.input += encoder.input;
  model.whole = {};
  model.sharding.sequence = model.sharding.sequence || encoder.sharding.sequence;
  const bool counted = model.parameters > 0 && encoder.parameters > 0;
  model.parameters = counted ? model.parameters + encoder.parameters : 0;
  model.encoder = {count, encoder.sharding.tensor, frozen};
  return model;
}

Model behind_encoder(const Model& model) {
  const int first = model.encoder.count;
  Model own = model;
  own.layers.erase(own.layers.begin(), own.layers.begin() + first);
  own.edges.clear();
  for (const LayerEdge& edge : edges_of(model)) {
    if (edge.from >= first) own.edges.push_back({edge.from - first, edge.to - first});
  }
  own.encoder = {};
  return own;
}

Model encoder_of(const Model& model) {
  Model own = model;
  own.layers.resize(as_size(model.encoder.count));
  own.edges.clear();
  for (const LayerEdge& edge : edges_of(model)) {
    if (edge.to < model.encoder.count) own.edges.push_back(edge);
  }
  own.encoder = {};
  return own;
}

}  // namespace stageline
