// Decides stage by stage what is recomputed or offloaded.
#include "cost_models/recomputation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::string_view core_attention = "core_attn";

// Calls each(number) for the stages or layers ("stage" or "layer") of the ranges, of so many.
template <class Each>
void for_numbers(const std::vector<NumberRange>& ranges, std::string_view one, int count,
                 std::string_view flag, Each&& each) {
  for (const NumberRange& range : ranges) {
    const int last = range.last.value_or(std::max(range.first, count - 1));
    if (last >= count) {
      throw UsageError(fmt::format("{} names {} {}, but there are {} {}s, 0 to {}", flag, one,
                                   std::max(range.first, last), count, one, count - 1));
    }
    for (int i = range.first; i <= last; ++i) each(i);
  }
}

// What is asked of one layer: by a part for all, for its stage or for itself.
struct LayerAsked {
  Rebuild rebuild = Rebuild::none;
  int every = 1;
  std::vector<std::string> modules{};
  friend bool operator==(const LayerAsked&, const LayerAsked&) = default;
};

// Calls each(layer, how) for every layer that a part names, in the order of the parts.
template <class Each>
void for_layers(const Recomputation& asked, const Partition& partition, Each&& each) {
  const auto layers = static_cast<int>(partition.stage_of.size());
  for (const Recomputation::Part& part : asked.parts) {
    std::vector<bool> named(as_size(partition.stages), part.everywhere());
    for_numbers(part.stages, "stage", partition.stages, "--recompute",
                [&](int s) { nth(named, s) = true; });
    for (int l = 0; l < layers; ++l) {
      if (nth(named, nth(partition.stage_of, l))) each(l, part.how);
    }
    for_numbers(part.layers, "layer", layers, "--recompute", [&](int l) { each(l, part.how); });
  }
}

// Leaves alone all but the first blocks of each stage that the part names.
void leave_later_blocks(const Recomputation::Part& part, const Model& model,
                        const Partition& partition, std::vector<LayerAsked>& layers) {
  const std::vector<int> lengths = lengths_of_blocks(model);
  std::vector<int> found(as_size(partition.stages));  // blocks so far
  const Recomputation alone{{part}, std::nullopt};
  std::size_t end = 0;  // of the last block that is taken
  for_layers(alone, partition, [&](int l, const StageRecomputation&) {
    const std::size_t at = as_size(l);
    if (at < end) return;
    LayerAsked& layer = layers[at];
    layer = {};
    const int length = lengths[at];
    if (length == 0 || nth(found, partition.stage_of[at]) >= part.first_blocks) return;
    ++nth(found, partition.stage_of[at]);
    end = std::min(at + as_size(length), layers.size());
    for (std::size_t inside = at; inside < end; ++inside) {
      layers[inside] = {Rebuild::every, length, {}};
    }
  });
}

std::vector<LayerAsked> by_layer(const Recomputation& asked, const Model& model,
                                 const Partition& partition) {
  std::vector<LayerAsked> layers(partition.stage_of.size());
  for (const Recomputation::Part& part : asked.parts) {
    if (part.first_blocks > 0) {
      leave_later_blocks(part, model, partition, layers);
      continue;
    }
    for_layers({{part}, std::nullopt}, partition, [&](int l, const StageRecomputation& how) {
      nth(layers, l) = {how.rebuild, how.every, how.modules};
    });
  }
  return layers;
}

bool has_module(const Layer& layer, std::string_view name) {
  return std::any_of(layer.modules.begin(), layer.modules.end(),
                     [&](const LayerModule& one) { return one.name == name; });
}

bool has_module(const Model& model, std::string_view name) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [&](const Layer& layer) { return has_module(layer, name); });
}

// "core_attn, layernorm and mlp"; "" where layers have none.
std::string modules_in(const Model& model) {
  std::vector<std::string> names;
  for (const Layer& layer : model.layers) {
    for (const LayerModule& one : layer.modules) {
      if (one.name == ops_module) continue;
      if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
    }
  }
  if (names.size() < 2) return fmt::format("{}", fmt::join(names, ""));
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

std::string name_of(const Model& model) { return model.name.empty() ? "the model" : model.name; }

void check_modules(const std::vector<std::string>& modules, const Model& model) {
  for (const std::string& name : modules) {
    if (has_module(model, name)) continue;
    if (name == ops_module) {
      throw UsageError(fmt::format(
          "--recompute ops: no layer of {} says what torch's policy by ops rebuilds, which dense "
          "language models by name do; take full, every:N or block:N",
          name_of(model)));
    }
    const std::string known = modules_in(model);
    throw UsageError(fmt::format("--recompute modules:{}: no layer of {} has that module; {}", name,
                                 name_of(model),
                                 known.empty() ? "they have none, so take full, every:N or block:N"
                                               : fmt::format("they have {}", known)));
  }
}

// Whether R makes anything of the layer again if it is asked so.
bool says(const Layer& layer, const LayerAsked& asked) {
  if (asked.modules.empty()) return layer.selective_stash > Bytes{};
  return std::any_of(asked.modules.begin(), asked.modules.end(),
                     [&](const std::string& name) { return has_module(layer, name); });
}

// Calls each(module) for those that are named.
template <class Each>
void for_modules(const Layer& layer, const std::vector<std::string>& names, Each&& each) {
  for (const LayerModule& one : layer.modules) {
    if (std::find(names.begin(), names.end(), one.name) != names.end()) each(one);
  }
}

// The recomputation of a stage with these layers, in their order.
StageRecomputation of_stage(const std::vector<LayerAsked>& layers) {
  if (layers.empty()) return {};
  const LayerAsked& first = layers.front();
  const auto count = static_cast<int>(layers.size());
  if (std::all_of(layers.begin(), layers.end(),
                  [&](const LayerAsked& one) { return one == first; })) {
    const bool whole = first.rebuild == Rebuild::every && first.every >= count;
    StageRecomputation alike = whole ? StageRecomputation{Rebuild::full, 1}
                                     : StageRecomputation{first.rebuild, first.every};
    alike.modules = first.modules;
    return alike;
  }
  StageRecomputation stage;
  int in_block = 0;  // layers so far
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool goes_on = i > 0 && layers[i] == layers[i - 1] &&
                         (layers[i].rebuild == Rebuild::full ||
                          (layers[i].rebuild == Rebuild::every && in_block < layers[i].every));
    in_block = goes_on ? in_block + 1 : 1;
    const Rebuild rebuild = layers[i].rebuild == Rebuild::full ? Rebuild::every : layers[i].rebuild;
    stage.layers.push_back({rebuild, !goes_on, layers[i].modules});
    stage.rebuild = std::max(stage.rebuild, rebuild);
  }
  const LayerRecomputation each{stage.rebuild, true, {}};
  const bool alike = std::all_of(stage.layers.begin(), stage.layers.end(),
                                 [&](const LayerRecomputation& one) { return one == each; });
  return alike ? StageRecomputation{stage.rebuild, 1} : stage;
}

}  // namespace

std::vector<int> lengths_of_blocks(const Model& model) {
  std::vector<int> lengths(model.layers.size());
  bool any = false;
  std::size_t begin = lengths.size();  // none
  for (std::size_t l = 0; l < lengths.size(); ++l) {
    const std::string& kind = model.layers[l].kind;
    if (kind == "attention" || kind == "block") begin = l;
    if (begin == lengths.size() || (kind != "mlp" && kind != "moe" && kind != "block")) continue;
    lengths[begin] = static_cast<int>(l - begin) + 1;
    begin = lengths.size();
    any = true;
  }
  if (!any) std::fill(lengths.begin(), lengths.end(), 1);
  return lengths;
}

std::vector<StageRecomputation> by_stage(const Recomputation& asked, const Model& model,
                                         const Partition& partition) {
  std::vector<StageRecomputation> stages;
  if (asked.parts.empty()) return stages;
  std::vector<LayerAsked> layers = by_layer(asked, model, partition);
  const LayerAsked selective{Rebuild::selective, 1, {}};
  if (std::find(layers.begin(), layers.end(), selective) != layers.end() &&
      std::none_of(model.layers.begin(), model.layers.end(),
                   [&](const Layer& layer) { return says(layer, selective); })) {
    // A fused kernel keeps no scores; its forward runs again all the same, as in Megatron-Core.
    if (!has_module(model, core_attention)) {
      throw UsageError(fmt::format(
          "--recompute selective: no layer of {} says what selective recomputation "
          "rebuilds, which is attention of a language model by name; take full, every:N or "
          "block:N",
          name_of(model)));
    }
    const LayerAsked core{Rebuild::selective, 1, {std::string(core_attention)}};
    std::replace(layers.begin(), layers.end(), selective, core);
  }
  for (const Recomputation::Part& part : asked.parts) check_modules(part.how.modules, model);
  std::vector<std::vector<LayerAsked>> of(as_size(partition.stages));
  std::vector<bool> any(of.size());  // of its layers says what is rebuilt selectively
  for (std::size_t l = 0; l < layers.size(); ++l) {
    nth(of, partition.stage_of[l]).push_back(layers[l]);
    const bool modules = !layers[l].modules.empty();
    if (says(model.layers[l], modules ? layers[l] : selective)) {
      nth(any, partition.stage_of[l]) = true;
    }
  }
  for (std::size_t s = 0; s < of.size(); ++s) {
    for (LayerAsked& layer : of[s]) {
      if (layer.rebuild == Rebuild::selective && !any[s]) layer = {};
    }
    stages.push_back(of_stage(of[s]));
  }
  return stages;
}

std::vector<bool> kept_stages(const Recomputation& asked, const Partition& partition) {
  std::vector<bool> kept(partition.stage_of.size());
  for_layers(asked, partition, [&](int l, const StageRecomputation& how) {
    nth(kept, l) = how.rebuild == Rebuild::none;
  });
  std::vector<bool> stages(as_size(partition.stages), !asked.parts.empty());
  for (std::size_t l = 0; l < kept.size(); ++l) {
    if (!kept[l]) nth(stages, partition.stage_of[l]) = false;
  }
  return stages;
}

Time whole_rebuilding_time(const Layer& layer) {
  return layer.recompute > Time{} ? layer.recompute : layer.forward;
}

Time rebuilding_time(const Layer& layer, const StageRecomputation& stage, int place) {
  if (stage.of_layer(place) != Rebuild::selective) return whole_rebuilding_time(layer);
  const std::vector<std::string>& modules = stage.modules_of_layer(place);
  if (modules.empty()) return layer.selective_forward;
  Time time{};
  for_modules(layer, modules, [&](const LayerModule& one) { time += one.forward; });
  return time;
}

Bytes selective_stash(const Layer& layer, const StageRecomputation& stage, int place) {
  if (stage.of_layer(place) != Rebuild::selective) return Bytes{};
  const std::vector<std::string>& modules = stage.modules_of_layer(place);
  if (modules.empty()) return layer.selective_stash;
  Bytes bytes{};
  for_modules(layer, modules, [&](const LayerModule& one) { bytes += one.stash; });
  return std::min(bytes, layer.stash_input_grad + layer.stash_weight_grad);
}

std::int64_t selective_flops(const Layer& layer, const StageRecomputation& stage, int place) {
  const std::vector<std::string>& modules = stage.modules_of_layer(place);
  if (modules.empty()) return layer.selective_flops;
  std::int64_t flops = 0;
  for_modules(layer, modules, [&](const LayerModule& one) { flops += one.flops; });
  return flops;
}

std::vector<LayerCollective> module_collectives(const Layer& layer, const StageRecomputation& stage,
                                                int place) {
  std::vector<LayerCollective> all;
  if (stage.of_layer(place) != Rebuild::selective) return all;
  for_modules(layer, stage.modules_of_layer(place), [&](const LayerModule& one) {
    all.insert(all.end(), one.collectives.begin(), one.collectives.end());
  });
  return all;
}

std::vector<bool> by_stage(const Offloading& asked, int stages) {
  std::vector<bool> copied;
  if (!asked.of_stages()) return copied;
  copied.resize(as_size(stages), asked.all);
  if (asked.all) return copied;
  for_numbers(asked.stages, "stage", stages, "--offload", [&](int s) { nth(copied, s) = true; });
  return copied;
}

}  // namespace stageline
