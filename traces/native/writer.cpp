// Writes the native trace format, which traces/README.md describes: defaults are left out, times
// and bytes of a layer go on separate lines, and the reader restores identical models.
#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "traces/json/parts.hpp"
#include "traces/native/fields.hpp"
#include "traces/native/groups.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

std::string number(Time time) { return in_microseconds(time); }
std::string number(Bytes bytes) { return fmt::format("{}", bytes.count); }
std::string number(std::int64_t value) { return fmt::format("{}", value); }
std::string number(int value) { return fmt::format("{}", value); }

// `get` of every model, as one number or as a list.
template <class Get>
std::string values(const std::vector<Model>& models, bool always_list, Get get) {
  bool same = true;
  for (const Model& model : models) same = same && get(model) == get(models[0]);
  if (models.size() == 1 || (same && !always_list)) return number(get(models[0]));
  std::string list;
  for (const Model& model : models)
    list += fmt::format("{}{}", list.empty() ? "[" : ", ", number(get(model)));
  return list + "]";
}

std::string member(std::string_view key, const std::string& value) {
  return fmt::format("\"{}\": {}", key, value);
}

// `"key": value` of one field of layer `layer`, or nothing where it equals the default.
template <class Field>
std::string field_text(const std::vector<Model>& models, std::size_t layer, const Field& field) {
  bool needed = field.required;
  for (const Model& model : models) {
    const Layer& at = model.layers[layer];
    needed = needed || at.*field.member != fallback(field, at);
  }
  if (!needed) return {};
  return member(field.key,
                values(models, field.per_batch == PerBatch::must,
                       [&](const Model& model) { return model.layers[layer].*field.member; }));
}

std::string layer_text(const std::vector<Model>& models, std::size_t index) {
  constexpr std::string_view indent = "     ";
  const Layer& layer = models[0].layers[index];
  std::vector<std::string> times;
  for (const TimeField& field : time_fields) {
    std::string written = field_text(models, index, field);
    if (!written.empty()) times.push_back(std::move(written));
  }
  std::vector<std::string> bytes;
  for (const ByteField& field : byte_fields) {
    if (!models[0].bytes_known) break;
    std::string written = field_text(models, index, field);
    if (!written.empty()) bytes.push_back(std::move(written));
  }
  if (layer.parameters != 0) bytes.push_back(member("parameters", number(layer.parameters)));
  if (layer.expert_parameters != 0) {
    bytes.push_back(member("expert_parameters", number(layer.expert_parameters)));
  }
  for (const FlopsField& field : flops_fields) {
    const auto flops = [&](const Model& model) { return model.layers[index].*field.member; };
    if (std::any_of(models.begin(), models.end(), [&](const Model& m) { return flops(m) != 0; })) {
      bytes.push_back(member(field.key, values(models, false, flops)));
    }
  }
  if (layer.memory_bound) bytes.push_back(member("memory_bound", "true"));
  std::string text = fmt::format("{{{}, {}{}{}", member("name", json_text(layer.name)),
                                 member("kind", json_text(layer.kind)), json_lines(times, indent),
                                 bytes.empty() ? std::string() : json_lines(bytes, indent));
  if (!layer.collectives.empty()) {
    std::vector<const std::vector<LayerCollective>*> by_size;
    for (const Model& model : models) by_size.push_back(&model.layers[index].collectives);
    text +=
        fmt::format(",\n{}{}", indent, member("collectives", collectives_text(by_size, "       ")));
  }
  return text + "}";
}

std::string provenance_text(const Provenance& provenance) {
  std::string text = "{\n    " + member("origin", fmt::format("\"{}\"", name(provenance.origin)));
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += ",\n    " + member(key, json_text(value));
  };
  add("device", provenance.device);
  add("software", provenance.software);
  add("settings", provenance.settings);
  add("method", provenance.method);
  add("source", provenance.source);
  add("date", provenance.date);
  if (!provenance.notes.empty()) {
    std::string notes;
    for (const std::string& note : provenance.notes) {
      notes += fmt::format("{}{}", notes.empty() ? "[\n      " : ",\n      ", json_text(note));
    }
    text += ",\n    " + member("notes", notes + "\n    ]");
  }
  return text + "\n  }";
}

std::string whole_text(const std::vector<Model>& models) {
  const std::string samples =
      member("samples", values(models, true, [](const Model& m) { return m.whole.samples; }));
  std::vector<std::string> times;
  for (const WholeField& field : whole_fields) {
    times.push_back(member(field.key, values(models, true, [&](const Model& model) {
                             return model.whole.*field.member;
                           })));
  }
  return "{" + samples + json_lines(times, "    ") + "}";
}

// The parts of a layer that the file holds once.
auto constant_part(const Layer& layer) {
  return std::tie(layer.name, layer.kind, layer.weights, layer.tied_weights, layer.gradients,
                  layer.optimizer_state, layer.parameters, layer.expert_parameters,
                  layer.memory_bound);
}

void check_whole(const std::vector<Model>& models) {
  const bool any = std::any_of(models.begin(), models.end(),
                               [](const Model& model) { return model.whole != WholeRun{}; });
  for (const Model& model : models) {
    if (any && model.whole.samples < 1) {
      throw UsageError(fmt::format(
          "the whole run of \"{}\" has {} samples at batch {}; a measured whole run needs at least "
          "1 at every batch size of the trace",
          model.name, model.whole.samples, model.batch));
    }
  }
}

void check_writable(const std::vector<Model>& models) {
  if (models.empty() || models[0].layers.empty()) {
    throw UsageError("a trace needs at least one model with at least one layer");
  }
  for (std::size_t i = 1; i < models.size(); ++i) {
    const Model& model = models[i];
    const Model& first = models[0];
    if (models[i - 1].batch < 1 || model.batch <= models[i - 1].batch) {
      throw UsageError(fmt::format("the batch sizes of one trace must ascend ({} follows {})",
                                   model.batch, models[i - 1].batch));
    }
    bool same = model.name == first.name && model.sample == first.sample &&
                model.provenance == first.provenance && model.edges == first.edges &&
                model.sharding == first.sharding && model.tokens == first.tokens &&
                model.parameters == first.parameters && model.peak_flops == first.peak_flops &&
                model.layers.size() == first.layers.size() &&
                model.bytes_known == first.bytes_known;
    for (std::size_t l = 0; same && l < model.layers.size(); ++l) {
      same = constant_part(model.layers[l]) == constant_part(first.layers[l]) &&
             same_exchange(model.layers[l].collectives, first.layers[l].collectives);
    }
    if (!same) {
      throw UsageError(fmt::format(
          "the models of one trace must differ in batch size, times, activations and workspace "
          "only, but \"{}\" at batch {} differs from batch {} in something else",
          model.name, model.batch, first.batch));
    }
  }
  check_whole(models);
}

}  // namespace

std::string write_trace(const std::vector<Model>& models) {
  check_writable(models);
  const Model& model = models[0];
  std::vector<std::string> lines{member("format", json_text(std::string(trace_format))),
                                 member("name", json_text(model.name))};
  if (!model.sample.empty()) lines.push_back(member("sample", json_text(model.sample)));
  if (model.tokens != 0) lines.push_back(member("tokens", number(model.tokens)));
  if (model.parameters != 0) lines.push_back(member("parameters", number(model.parameters)));
  if (model.peak_flops != 0) {
    lines.push_back(member("peak_flops", fmt::format("{}", model.peak_flops)));
  }
  if (model.batch != 0) {
    lines.push_back(member("batch", values(models, true, [](const Model& m) { return m.batch; })));
  }
  lines.push_back(member("provenance", provenance_text(model.provenance)));
  if (model.bytes_known) {
    lines.push_back(
        member("input_bytes", values(models, false, [](const Model& m) { return m.input; })));
  }
  if (model.sharding != Sharding{}) {
    lines.push_back(member("sharding", sharding_text(model.sharding)));
  }
  if (model.whole.samples > 0) lines.push_back(member("whole", whole_text(models)));
  std::string list;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    list += fmt::format("{}{}", list.empty() ? "[\n    " : ",\n    ", layer_text(models, i));
  }
  lines.push_back(member("layers", list + "\n  ]"));
  if (!model.edges.empty()) {
    list.clear();
    for (const LayerEdge& edge : model.edges) {
      const std::string from = json_text(nth(model.layers, edge.from).name);
      const std::string to = json_text(nth(model.layers, edge.to).name);
      list += fmt::format("{}[{}, {}]", list.empty() ? "[\n    " : ",\n    ", from, to);
    }
    lines.push_back(member("edges", list + "\n  ]"));
  }
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "{\n  " : ",\n  ") + line;
  return text + "\n}\n";
}

}  // namespace stageline
