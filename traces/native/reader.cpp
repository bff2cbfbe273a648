// Reads the native trace format, which traces/README.md describes.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "traces/json/parts.hpp"
#include "traces/native/fields.hpp"
#include "traces/native/groups.hpp"
#include "traces/native/sizes.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_batches = 64;
constexpr std::int64_t largest_batch = std::numeric_limits<int>::max();
constexpr std::int64_t most_tokens = std::int64_t{1} << 40U;
constexpr std::int64_t most_flops = std::int64_t{1} << 62U;
constexpr std::int64_t most_samples = std::numeric_limits<int>::max();

TraceSizes read_batches(const JsonNode& root) {
  const std::optional<JsonNode> node = root.find("batch");
  if (!node) return {{0}, false};
  if (!node->is_list()) return {{static_cast<int>(node->whole(1, largest_batch))}, false};
  TraceSizes batches{{}, true};
  const std::vector<JsonNode> items = node->items();
  if (items.empty() || items.size() > most_batches) {
    node->refuse(fmt::format("a list of batch sizes has 1 to {} of them (this one has {})",
                             most_batches, items.size()));
  }
  for (const JsonNode& item : items) {
    const int size = static_cast<int>(item.whole(1, largest_batch));
    if (!batches.sizes.empty() && size <= batches.sizes.back()) {
      item.refuse(
          fmt::format("batch sizes must ascend ({} follows {})", size, batches.sizes.back()));
    }
    batches.sizes.push_back(size);
  }
  return batches;
}

// The layer at every batch size.
std::vector<Layer> read_layer(const JsonNode& node, const TraceSizes& batches, bool bytes_known) {
  std::vector<std::string> required{"name", "kind"};
  std::vector<std::string> optional{"parameters", "expert_parameters", "memory_bound",
                                    "collectives"};
  for (const auto& field : flops_fields) optional.emplace_back(field.key);
  for (const auto& field : time_fields) (field.required ? required : optional).push_back(field.key);
  for (const auto& field : byte_fields) {
    if (!bytes_known && node.kind() == JsonKind::object && node.find(field.key)) {
      node.at(field.key).refuse(
          "the trace has no input_bytes, so its bytes are unknown, but this layer gives some; "
          "add input_bytes, or leave out all bytes");
    }
    (field.required && bytes_known ? required : optional).push_back(field.key);
  }
  node.check_keys(required, optional);

  Layer common;
  common.name = node.at("name").text();
  if (common.name.empty()) node.at("name").refuse("a layer's name must not be empty");
  common.kind = node.at("kind").text();
  if (const auto found = node.find("parameters")) common.parameters = found->whole(0, most_bytes);
  if (const auto found = node.find("expert_parameters")) {
    common.expert_parameters = found->whole(0, common.parameters);
  }
  if (const auto found = node.find("memory_bound")) common.memory_bound = found->boolean();
  std::vector<Layer> layers(batches.sizes.size(), common);
  if (const auto found = node.find("collectives")) {
    const auto collectives = read_collectives(*found, batches);
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].collectives = collectives[i];
  }

  const auto fill = [&](const auto& field, auto read) {
    const std::optional<JsonNode> found = node.find(field.key);
    if (!found) {
      for (Layer& layer : layers) layer.*field.member = fallback(field, layer);
      return;
    }
    const auto values = by_batch(*found, batches, field.per_batch, read);
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].*field.member = values[i];
  };
  for (const TimeField& field : time_fields) {
    fill(field, [](const JsonNode& value) { return value.microseconds(); });
  }
  for (const ByteField& field : byte_fields) {
    fill(field, [](const JsonNode& value) { return value.bytes(); });
  }
  if (layers.front().tied_weights > layers.front().weights) {
    node.at("tied_weights_bytes")
        .refuse(fmt::format("tied weights are part of the layer's weights, {} of them",
                            layers.front().weights.count));
  }
  for (const FlopsField& field : flops_fields) {
    const std::optional<JsonNode> found = node.find(field.key);
    if (!found) continue;
    const auto values = by_batch(*found, batches, PerBatch::may,
                                 [](const JsonNode& value) { return value.whole(0, most_flops); });
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].*field.member = values[i];
  }
  return layers;
}

Provenance read_provenance(const JsonNode& node) {
  node.check_keys({"origin"},
                  {"device", "software", "settings", "method", "source", "date", "notes"});
  Provenance provenance;
  const JsonNode origin = node.at("origin");
  const std::string word = origin.text();
  if (word == "measured") {
    provenance.origin = Origin::measured;
  } else if (word == "estimated") {
    provenance.origin = Origin::estimated;
  } else if (word == "synthetic") {
    provenance.origin = Origin::synthetic;
  } else {
    origin.refuse(
        fmt::format("{} is not an origin; it is \"measured\", \"estimated\" or \"synthetic\"",
                    in_quotes(word)));
  }
  provenance.device = node.text_or_empty("device");
  provenance.software = node.text_or_empty("software");
  provenance.settings = node.text_or_empty("settings");
  provenance.method = node.text_or_empty("method");
  provenance.source = node.text_or_empty("source");
  provenance.date = node.text_or_empty("date");
  if (const auto notes = node.find("notes")) {
    for (const JsonNode& note : notes->items()) provenance.notes.push_back(note.text());
  }
  return provenance;
}

// The whole run at every batch size.
std::vector<WholeRun> read_whole(const JsonNode& node, const TraceSizes& batches) {
  std::vector<std::string> keys{"samples"};
  for (const WholeField& field : whole_fields) keys.emplace_back(field.key);
  node.check_keys(keys, {});
  std::vector<WholeRun> runs(batches.sizes.size());
  const std::vector<int> samples = by_batch(
      node.at("samples"), batches, PerBatch::must,
      [](const JsonNode& value) { return static_cast<int>(value.whole(1, most_samples)); });
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].samples = samples[i];
  for (const WholeField& field : whole_fields) {
    const std::vector<Time> values =
        by_batch(node.at(field.key), batches, PerBatch::must,
                 [](const JsonNode& value) { return value.microseconds(); });
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i].*field.member = values[i];
  }
  return runs;
}

using LayerNumbers = std::unordered_map<std::string, int>;

std::vector<LayerEdge> read_edges(const JsonNode& node, const LayerNumbers& number) {
  const std::vector<JsonNode> items = node.items();
  if (items.empty()) node.refuse("a list of edges must not be empty; leave it out for a chain");
  std::vector<std::string> names;  // for a hint, where there are few
  if (number.size() <= 10'000) {
    for (const auto& [name, index] : number) names.push_back(name);
    std::sort(names.begin(), names.end());
  }
  std::vector<LayerEdge> edges;
  for (const JsonNode& item : items) {
    const std::vector<JsonNode> ends = item.items();
    if (ends.size() != 2) {
      item.refuse(
          fmt::format("an edge is a list of two layer names, [\"from\", \"to\"] (this one has {})",
                      ends.size()));
    }
    const auto layer = [&](const JsonNode& end) {
      const auto found = number.find(end.text());
      if (found == number.end()) {
        end.refuse(fmt::format("there is no layer {}{}", in_quotes(end.text()),
                               suggestion(end.text(), names)));
      }
      return found->second;
    };
    const LayerEdge edge{layer(ends[0]), layer(ends[1])};
    if (edge.from == edge.to) {
      item.refuse(fmt::format("the layer {} must not feed itself", in_quotes(ends[0].text())));
    }
    edges.push_back(edge);
  }
  std::vector<LayerEdge> sorted = edges;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    const auto first = std::find(edges.begin(), edges.end(), *twice);
    const auto second = std::find(std::next(first), edges.end(), *twice);
    nth(items, second - edges.begin())
        .refuse(
            fmt::format("this edge appears twice; the first is /edges/{}", first - edges.begin()));
  }
  return edges;
}

void check_format(const JsonNode& root) {
  if (root.kind() != JsonKind::object) root.refuse("a trace is one JSON object");
  const JsonNode format = root.at("format");
  const std::string text = format.text();
  if (text == trace_format) return;
  if (text.rfind("stageline-trace ", 0) == 0) {
    format.refuse(fmt::format("{} is of an unknown version; this is version 1, \"{}\"",
                              in_quotes(text), trace_format));
  }
  format.refuse(fmt::format("a trace has \"{}\" here, not {}", trace_format, in_quotes(text)));
}

}  // namespace

std::vector<Model> read_trace(const std::string& json_text, const std::string& file) {
  const JsonValue tree = parse_json(json_text, file);
  return read_trace(JsonNode(tree, "", file));
}

std::vector<Model> read_trace(const JsonNode& root) {
  check_format(root);
  root.check_keys({"format", "name", "provenance", "layers"},
                  {"sample", "tokens", "parameters", "peak_flops", "batch", "whole", "edges",
                   "input_bytes", "sharding"});
  const TraceSizes batches = read_batches(root);
  Model common;
  common.name = root.at("name").text();
  common.sample = root.text_or_empty("sample");
  if (const auto node = root.find("tokens")) common.tokens = node->whole(1, most_tokens);
  if (const auto node = root.find("parameters")) common.parameters = node->whole(1, most_bytes);
  if (const auto node = root.find("peak_flops")) common.peak_flops = node->positive();
  common.provenance = read_provenance(root.at("provenance"));
  const std::optional<JsonNode> input = root.find("input_bytes");
  common.bytes_known = input.has_value();
  if (const auto node = root.find("sharding")) common.sharding = read_sharding(*node);
  std::vector<Model> models(batches.sizes.size(), common);

  for (std::size_t i = 0; i < models.size(); ++i) models[i].batch = batches.sizes[i];
  if (input) {
    const std::vector<Bytes> inputs = by_batch(*input, batches, PerBatch::may,
                                               [](const JsonNode& value) { return value.bytes(); });
    for (std::size_t i = 0; i < models.size(); ++i) models[i].input = inputs[i];
  }
  if (const auto node = root.find("whole")) {
    const std::vector<WholeRun> runs = read_whole(*node, batches);
    for (std::size_t i = 0; i < models.size(); ++i) models[i].whole = runs[i];
  }
  LayerNumbers number;
  const std::vector<JsonNode> layers = root.at("layers").items();
  if (layers.empty()) root.at("layers").refuse("a model must have at least one layer");
  for (const JsonNode& node : layers) {
    std::vector<Layer> sizes = read_layer(node, batches, common.bytes_known);
    const auto [earlier, is_new] = number.emplace(sizes[0].name, static_cast<int>(number.size()));
    if (!is_new) {
      node.at("name").refuse(fmt::format("the name {} appears twice; the first is /layers/{}",
                                         in_quotes(sizes[0].name), earlier->second));
    }
    for (std::size_t i = 0; i < models.size(); ++i) models[i].layers.push_back(std::move(sizes[i]));
  }
  if (const auto node = root.find("edges")) {
    const std::vector<LayerEdge> edges = read_edges(*node, number);
    for (Model& model : models) {
      model.edges = edges;
      model = in_topological_order(std::move(model), root.file());
    }
  }
  if (models.front().layers.front().tied_weights != Bytes{}) {
    root.at("layers").refuse(
        fmt::format("{} is the first layer, whose weights others have: it has no "
                    "tied_weights_bytes itself",
                    in_quotes(models.front().layers.front().name)));
  }
  return models;
}

}  // namespace stageline
