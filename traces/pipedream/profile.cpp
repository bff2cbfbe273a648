// Converts a profile of PipeDream (or DAPPLE) to a model; traces/pipedream/text.cpp parses it.
#include <fmt/core.h>

#include <array>
#include <cctype>

#include "sim/base/errors.hpp"
#include "traces/json/tree.hpp"
#include "traces/pipedream/text.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

bool is_input(const PipedreamNode& node) { return node.description.rfind("Input", 0) == 0; }

// "Conv2d(64, 64)" → "Conv2d"; "__getitem__(0)" → "getitem".
std::string first_word(const std::string& description) {
  std::string word;
  for (const char c : description) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') break;
    word += c;
  }
  const std::size_t begin = word.find_first_not_of('_');
  if (begin == std::string::npos) return "layer";
  return word.substr(begin, word.find_last_not_of('_') - begin + 1);
}

std::string kind_of(const std::string& word) {
  struct Kind {
    std::string_view part;  // substring of the word
    std::string_view kind;
  };
  constexpr std::array<Kind, 20> kinds{
      {{"Conv", "conv"},           {"Linear", "linear"},       {"Classifier", "linear"},
       {"Norm", "norm"},           {"ReLU", "activation"},     {"Sigmoid", "activation"},
       {"Tanh", "activation"},     {"GELU", "activation"},     {"Softmax", "activation"},
       {"Pool", "pool"},           {"LSTM", "lstm"},           {"GRU", "gru"},
       {"Embedding", "embedding"}, {"Attention", "attention"}, {"Dropout", "dropout"},
       {"Input", "input"},         {"View", "view"},           {"Reshape", "view"},
       {"Flatten", "view"},        {"Concat", "concat"}}};
  for (const Kind& entry : kinds) {
    if (word.find(entry.part) != std::string::npos) return std::string(entry.kind);
  }
  std::string lower;
  for (const char c : word) {
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return lower;
}

// How a layer's single backward time is split into I and W: an estimate, as the profile lacks it.
enum class Split : std::uint8_t { all_input_grad, half, all_weight_grad };

Split split_of(const Layer& layer, bool first_with_weights) {
  if (layer.weights == Bytes{}) return Split::all_input_grad;
  if (first_with_weights || layer.kind == "embedding") return Split::all_weight_grad;
  if (layer.kind == "norm") return Split::all_input_grad;
  return Split::half;
}

void apply(Split split, Bytes activation, Layer& layer) {
  switch (split) {
    case Split::all_input_grad:
      layer.input_grad = layer.backward;
      layer.stash_input_grad = activation;
      return;
    case Split::half:
      layer.input_grad = layer.backward / 2;
      break;
    case Split::all_weight_grad:
      break;
  }
  layer.weight_grad = layer.backward - layer.input_grad;
  layer.stash_weight_grad = activation;
  layer.stash_gradient = activation;
}

// ".../vgg16/graph.txt" → "vgg16"; "vgg16.graph.txt" → "vgg16".
std::string model_name(const std::string& file) {
  std::string path = file;
  for (const std::string_view ending : {".txt", "graph", ".", "/"}) {
    if (path.size() >= ending.size() &&
        path.compare(path.size() - ending.size(), ending.size(), ending) == 0) {
      path.resize(path.size() - ending.size());
    }
  }
  path.erase(0, path.find_last_of('/') + 1);
  return path.empty() ? "profile" : path;
}

Provenance provenance_of(const std::string& file, bool has_stages, bool has_batch) {
  Provenance provenance;
  provenance.origin = Origin::measured;
  provenance.method = "Times and sizes of each layer for one minibatch, from a PipeDream profile.";
  provenance.source = file;
  provenance.notes = {
      "The profile gives one backward time a layer; its split into input gradient and weight "
      "gradient is estimated: without weights and in normalizations all input gradient, in the "
      "first layer with weights and in embeddings all weight gradient, else half and half.",
      "The stash of a layer is its activation size; what a layer with a weight gradient keeps is "
      "held for that, everything else for the input gradient, "
      "which leaves a gradient as large for the weight gradient.",
      "Nodes whose description begins with Input cost nothing; "
      "their activation sizes are the model's input.",
      "The profile does not say what the optimizer costs: its time and its state are 0, and the "
      "gradients are as large as the weights."};
  if (has_stages) provenance.notes.emplace_back("The profile's own stage_id fields are not used.");
  if (!has_batch) {
    provenance.notes.emplace_back("The profile does not say the batch size of its minibatch.");
  }
  return provenance;
}

}  // namespace

Model read_pipedream_profile(const std::string& text, const std::string& file, int batch) {
  if (batch < 0) throw UsageError(fmt::format("--batch must not be negative (it is {})", batch));
  const PipedreamProfile profile = parse_pipedream_profile(text, file);
  Model model;
  model.name = model_name(file);
  model.batch = batch;
  model.edges = profile.edges;
  model.provenance = provenance_of(file, profile.has_stages, batch != 0);
  for (const PipedreamNode& node : profile.nodes) {
    const std::string word = first_word(node.description);
    Layer layer;
    layer.name = node.id + "." + word;
    layer.kind = kind_of(word);
    if (is_input(node)) {
      if (node.activation.count > most_bytes - model.input.count) {
        throw TraceError(file, "", "the inputs have more than 2^62 bytes together");
      }
      model.input += node.activation;
    } else {
      layer.forward = node.forward;
      layer.backward = node.backward;
      layer.weights = node.parameters;
      layer.gradients = node.parameters;
      layer.output = node.activation;
    }
    model.layers.push_back(layer);
  }
  model = in_topological_order(std::move(model), file);
  bool first_with_weights = true;
  for (Layer& layer : model.layers) {
    apply(split_of(layer, first_with_weights), layer.output, layer);
    if (layer.weights != Bytes{}) first_with_weights = false;
  }
  return model;
}

}  // namespace stageline
