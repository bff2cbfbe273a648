// Cuts a model as a layout of Megatron says, and writes a partition as one.
#include "schedulers/partition/megatron.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "schedulers/partition/transformer_blocks.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr char pass_letter = '-';  // of a stage without a letter

// A layer of Megatron's: its letter, and the layers of ours that it is.
struct Unit {
  char letter = 't';
  int first = 0;
  int last = 0;
};

std::vector<Unit> units_of(const Model& model) {
  const auto& layers = model.layers;
  const int count = static_cast<int>(layers.size());
  const std::vector<BlockLayers> blocks = blocks_of(model);
  const auto is = [&](int layer, std::string_view kind) { return nth(layers, layer).kind == kind; };
  std::size_t block = 0;  // the next one
  const auto begins = [&](int layer) {
    return block < blocks.size() && blocks[block].first == layer;
  };
  int at = 0;
  while (at < count && !begins(at) && !is(at, pass_kind)) ++at;
  if (blocks.empty()) {
    throw UsageError(fmt::format(
        "a Megatron layout is of transformers, and {} has no blocks (layers of kind attention and "
        "mlp, or block)",
        model.name));
  }
  if (at == 0) {
    throw UsageError(
        fmt::format("a Megatron layout begins with the embedding, and {} begins with a block ({})",
                    model.name, layers.front().name));
  }
  std::vector<Unit> units{{'E', 0, at - 1}};
  while (at < count) {
    if (begins(at)) {
      units.push_back({'t', at, blocks[block].last});
      at = blocks[block].last + 1;
      ++block;
    } else if (is(at, "mtp") || is(at, pass_kind)) {
      units.push_back({is(at, "mtp") ? 'm' : pass_letter, at, at});
      ++at;
    } else {
      // These layers are the unit's before, or the loss's if nothing but such layers follows.
      int next = at;
      while (next < count && !begins(next) && !is(next, "mtp") && !is(next, pass_kind)) ++next;
      if (next == count) {
        units.push_back({'L', at, count - 1});
      } else {
        units.back().last = next - 1;
      }
      at = next;
    }
  }
  if (units.back().letter != 'L') {
    throw UsageError(fmt::format(
        "a Megatron layout ends with the loss, and {} ends with layer {}, which is none",
        model.name, layers.back().name));
  }
  return units;
}

// The layers before `layer` now reach those after it through a layer that costs nothing.
//
//   a ──► b ──► c          a ──► b ──┬─► pass ──► c     its output is all that crosses
//   └───────────┘          └─────────┘
Model with_pass(Model model, int layer, std::string name) {
  const auto taken = [&](const Layer& other) { return other.name == name; };
  while (std::any_of(model.layers.begin(), model.layers.end(), taken)) name += "'";
  Layer pass;
  pass.name = std::move(name);
  pass.kind = pass_kind;
  const auto at = [&](int index) -> Layer& { return nth(model.layers, index); };
  std::vector<LayerEdge> edges;
  std::vector<int> makers;  // of what crosses
  const std::vector<LayerEdge> before = edges_of(model);
  for (const LayerEdge& edge : before) {
    const auto moved = [&](int index) { return index < layer ? index : index + 1; };
    if (edge.from >= layer || edge.to < layer) {
      edges.push_back({moved(edge.from), moved(edge.to)});
      continue;
    }
    edges.push_back({edge.from, layer});
    edges.push_back({layer, moved(edge.to)});
    if (std::find(makers.begin(), makers.end(), edge.from) == makers.end()) {
      makers.push_back(edge.from);
    }
  }
  for (const int maker : makers) {
    pass.output += at(maker).output;
    int first = maker;  // its first reader, whose stash holds its output
    for (const LayerEdge& edge : before) {
      if (edge.from == maker && (first == maker || edge.to < first)) first = edge.to;
    }
    // Where only the maker keeps its output, the first layer that reads it has it in its stash all
    // the same, and the cut takes it away there. That layer is the pass now.
    const Bytes kept = at(maker).output_kept;
    Layer& reader = at(first);
    if (first < layer || kept == Bytes{} || reader.input_kept > Bytes{}) continue;
    if (reader.stash_input_grad < kept) continue;
    reader.stash_input_grad -= kept;
    pass.stash_input_grad += kept;
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  if (!model.edges.empty()) model.edges = std::move(edges);
  model.layers.insert(model.layers.begin() + layer, std::move(pass));
  return model;
}

// "Ettt" as "Et*3".
std::string shortened(const std::string& stage) {
  std::string text;
  for (std::size_t i = 0; i < stage.size();) {
    std::size_t end = i;
    while (end < stage.size() && stage[end] == stage[i]) ++end;
    text += stage[i];
    if (end - i > 1) text += fmt::format("*{}", end - i);
    i = end;
  }
  return text;
}

void check_placement(const Placement& placement) {
  int devices = 0;
  for (std::size_t s = 0; s < placement.stage.size(); ++s) {
    const StagePlace& place = placement.stage[s];
    if (place.apart() || place.replicas.size() != 1) {
      throw UsageError(
          fmt::format("Megatron has each stage on one device, and stage {} lives on several", s));
    }
    devices = std::max(devices, place.replicas.front() + 1);
  }
  for (std::size_t s = 0; s < placement.stage.size(); ++s) {
    const int home = placement.stage[s].replicas.front();
    const int there = static_cast<int>(s) % devices;
    if (home == there) continue;
    throw UsageError(
        fmt::format("Megatron puts stage k on device k mod {}, so stage {} on device {}, and here "
                    "it is on device "
                    "{}",
                    devices, s, there, home));
  }
  if (placement.stages() % devices != 0) {
    throw UsageError(
        fmt::format("Megatron has as many stages on each device, and {} stages do not "
                    "go into {} devices",
                    placement.stages(), devices));
  }
}

}  // namespace

std::vector<int> cuts_from_megatron(const std::string& text, const Model& model) {
  const std::vector<std::string> stages = parse_megatron(text);
  const std::vector<Unit> units = units_of(model);
  for (const char letter : {'t', 'm'}) {
    std::ptrdiff_t wanted = 0;
    for (const std::string& stage : stages) {
      wanted += std::count(stage.begin(), stage.end(), letter);
    }
    const auto there = std::count_if(units.begin(), units.end(),
                                     [&](const Unit& unit) { return unit.letter == letter; });
    if (wanted == there) continue;
    throw UsageError(
        fmt::format("Megatron layout \"{}\" has {} {}, but {} has {}", trimmed_layout(text), wanted,
                    letter == 't' ? "decoder layers (t)" : "multi-token prediction layers (m)",
                    model.name, there));
  }
  std::vector<int> last_layers;
  std::size_t unit = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].empty() && units[unit].letter != pass_letter) {
      throw UsageError(
          fmt::format("Megatron layout \"{}\": stage {} of {} has no layer, and {} has none of "
                      "kind {} that could "
                      "stand for it",
                      trimmed_layout(text), s, stages.size(), model.name, pass_kind));
    }
    const std::size_t first = unit;
    unit += std::max<std::size_t>(stages[s].size(), 1);
    for (std::size_t inside = first; inside < unit && !stages[s].empty(); ++inside) {
      if (units[inside].letter != pass_letter) continue;
      throw UsageError(fmt::format(
          "Megatron layout \"{}\": {} of {} is a stage by itself, where the layout has none "
          "without "
          "a layer",
          trimmed_layout(text), nth(model.layers, units[inside].first).name, model.name));
    }
    last_layers.push_back(units[unit - 1].last);
  }
  last_layers.pop_back();
  return last_layers;
}

Model with_empty_stages(const std::string& text, Model model) {
  const std::vector<std::string> stages = parse_megatron(text);
  if (std::none_of(stages.begin(), stages.end(), [](const auto& s) { return s.empty(); })) {
    return model;
  }
  const std::vector<Unit> units = units_of(model);
  std::size_t letters = 0;
  std::vector<std::pair<int, std::size_t>> places;  // a layer, and the stage that goes before it
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].empty() && letters < units.size()) {
      places.emplace_back(units[letters].first, s);
    }
    letters += stages[s].size();
  }
  std::reverse(places.begin(), places.end());  // so that those before keep their numbers
  for (const auto& [layer, stage] : places) {
    model = with_pass(std::move(model), layer, fmt::format("pass{}", stage));
  }
  return model;
}

std::string write_megatron(const Partition& partition, const Placement& placement,
                           const Model& model) {
  check_placement(placement);
  std::vector<std::string> stages(as_size(partition.stages));
  int before = 0;
  for (const Unit& unit : units_of(model)) {
    const int stage = nth(partition.stage_of, unit.first);
    for (int layer = unit.first; layer <= unit.last; ++layer) {
      const int other = nth(partition.stage_of, layer);
      if (other == stage) continue;
      const auto name = [&](int of) { return nth(model.layers, of).name; };
      throw UsageError(
          fmt::format("Megatron cuts between its layers only, and {} (layers {} to {}) is cut "
                      "between stages {} "
                      "and {}; give a --partition that keeps it whole",
                      unit.letter == 't' ? "a block" : fmt::format("its {}", unit.letter),
                      name(unit.first), name(unit.last), stage, other));
    }
    if (stage < before) {
      throw UsageError("Megatron's stages are runs of layers, and these are not");
    }
    before = stage;
    if (unit.letter != pass_letter) nth(stages, stage) += unit.letter;
  }
  std::string text;
  for (std::size_t s = 0; s < stages.size();) {
    // Equal stages one behind the other, the last of all left out: it has no bar.
    std::size_t end = s;
    while (end + 1 < stages.size() && stages[end] == stages[s]) ++end;
    const std::string stage = shortened(stages[s]);
    if (end - s > 1) {
      text += fmt::format("({}|)*{}", stage, end - s);
      s = end;
    } else {
      text += stage;
      text += s + 1 < stages.size() ? "|" : "";
      ++s;
    }
  }
  return text + "\n";
}

}  // namespace stageline
