// Reads what a user asks to recompute or to offload, and decides it stage by stage.
#include "cost_models/recomputation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/names.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

constexpr std::string_view block_prefix = "every:";
constexpr std::string_view layers_prefix = "layers:";
constexpr std::string_view forms =
    "none, selective, full or every:N, with @STAGES, @layers:LAYERS or for all";

// The items between commas and semicolons, all of them.
std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> items;
  for (std::size_t end = text.find_first_of(",;"); end != std::string_view::npos;
       end = text.find_first_of(",;")) {
    items.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  items.push_back(text);
  return items;
}

// `of`: "stages" or "layers".
NumberRange parse_range(std::string_view text, std::string_view of, const std::string& what) {
  std::string_view rest = text;
  const std::optional<int> first = take_number<int>(rest);
  if (first && *first >= 0) {
    if (rest.empty()) return {*first, first};
    if (rest == "-") return {*first, std::nullopt};
    if (rest.front() == '-') {
      const std::optional<int> last = parse_number<int>(rest.substr(1));
      if (last && *last >= *first) return {*first, last};
      if (last && *last >= 0) {
        throw UsageError(
            fmt::format("{}: the {} {} run backwards; write {}-{}", what, of, text, *last, *first));
      }
    }
  }
  throw UsageError(fmt::format(
      "{}: {} are numbers from 0 and ranges, such as 0,2-3 or 4- (not \"{}\")", what, of, text));
}

StageRecomputation parse_way(std::string_view text, const std::string& what) {
  if (text == "none") return {Rebuild::none, 1};
  if (text == "selective") return {Rebuild::selective, 1};
  if (text == "full") return {Rebuild::full, 1};
  if (text.substr(0, block_prefix.size()) == block_prefix) {
    const int every = parse_number<int>(text.substr(block_prefix.size())).value_or(0);
    if (every >= 1) return {Rebuild::every, every};
    throw UsageError(fmt::format(
        "{}: {}: N of every:N is a whole number of layers from 1, those of a block", what, text));
  }
  throw UsageError(
      fmt::format("{} is {} (not \"{}\"{})", what, forms, text,
                  did_you_mean(std::string(text), {"none", "selective", "full", "every:1"})));
}

bool is_layers(std::string_view text) {
  return text.substr(0, layers_prefix.size()) == layers_prefix;
}

// One more, behind a comma.
void add_range(std::string_view text, Recomputation::Part& part, const std::string& what) {
  const bool of_layers = !part.layers.empty();
  (of_layers ? part.layers : part.stages)
      .push_back(parse_range(text, of_layers ? "layers" : "stages", what));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "0,2-3,5-"
std::string print_ranges(const std::vector<NumberRange>& ranges) {
  std::string text;
  for (const NumberRange& range : ranges) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", range.first);
    if (!range.last) text += "-";
    if (range.last.value_or(range.first) != range.first) text += fmt::format("-{}", *range.last);
  }
  return text;
}

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

std::vector<LayerAsked> by_layer(const Recomputation& asked, const Partition& partition) {
  std::vector<LayerAsked> layers(partition.stage_of.size());
  for_layers(asked, partition, [&](int l, const StageRecomputation& how) {
    nth(layers, l) = {how.rebuild, how.every};
  });
  return layers;
}

// The recomputation of a stage with these layers, in their order.
StageRecomputation of_stage(const std::vector<LayerAsked>& layers) {
  if (layers.empty()) return {};
  const LayerAsked& first = layers.front();
  const auto count = static_cast<int>(layers.size());
  if (std::all_of(layers.begin(), layers.end(), [&](LayerAsked one) { return one == first; })) {
    const bool whole = first.rebuild == Rebuild::every && first.every >= count;
    return whole ? StageRecomputation{Rebuild::full, 1}
                 : StageRecomputation{first.rebuild, first.every};
  }
  StageRecomputation stage;
  int in_block = 0;  // layers so far
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool goes_on = i > 0 && layers[i] == layers[i - 1] &&
                         (layers[i].rebuild == Rebuild::full ||
                          (layers[i].rebuild == Rebuild::every && in_block < layers[i].every));
    in_block = goes_on ? in_block + 1 : 1;
    const Rebuild rebuild = layers[i].rebuild == Rebuild::full ? Rebuild::every : layers[i].rebuild;
    stage.layers.push_back({rebuild, !goes_on});
    stage.rebuild = std::max(stage.rebuild, rebuild);
  }
  const LayerRecomputation each{stage.rebuild, true};
  const bool alike = std::all_of(stage.layers.begin(), stage.layers.end(),
                                 [&](LayerRecomputation one) { return one == each; });
  return alike ? StageRecomputation{stage.rebuild, 1} : stage;
}

bool is_in(const std::vector<NumberRange>& ranges, std::int64_t number) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const NumberRange& range) {
    return range.first <= number && (!range.last || number <= *range.last);
  });
}

// Whether the ranges hold all of `part`: the first of it, and what comes behind each of them.
bool hold_all(const std::vector<NumberRange>& ranges, const NumberRange& part) {
  if (!is_in(ranges, part.first)) return false;
  return std::all_of(ranges.begin(), ranges.end(), [&](const NumberRange& range) {
    if (!range.last) return true;
    const bool behind = *range.last >= part.first && (!part.last || *range.last < *part.last);
    return !behind || is_in(ranges, std::int64_t{*range.last} + 1);
  });
}

// Whether later parts decide all that a part names, however the model is cut.
bool is_overruled(const std::vector<Recomputation::Part>& parts, std::size_t at) {
  std::vector<NumberRange> stages;
  std::vector<NumberRange> layers;
  for (std::size_t later = at + 1; later < parts.size(); ++later) {
    if (parts[later].everywhere()) return true;
    stages.insert(stages.end(), parts[later].stages.begin(), parts[later].stages.end());
    layers.insert(layers.end(), parts[later].layers.begin(), parts[later].layers.end());
  }
  const auto& [how, own_stages, own_layers] = parts[at];
  const auto held_by = [](const std::vector<NumberRange>& ranges) {
    return [&ranges](const NumberRange& own) { return hold_all(ranges, own); };
  };
  if (!own_stages.empty()) {
    return std::all_of(own_stages.begin(), own_stages.end(), held_by(stages));
  }
  if (!own_layers.empty()) {
    return std::all_of(own_layers.begin(), own_layers.end(), held_by(layers));
  }
  return hold_all(stages, {0, std::nullopt}) || hold_all(layers, {0, std::nullopt});
}

void check_each_decides(const Recomputation& asked, const std::string& what) {
  for (std::size_t i = 0; i < asked.parts.size(); ++i) {
    if (!is_overruled(asked.parts, i)) continue;
    const Recomputation rest{
        {asked.parts.begin() + static_cast<std::ptrdiff_t>(i) + 1, asked.parts.end()},
        std::nullopt};
    throw UsageError(fmt::format(
        "{}: \"{}\" decides nothing, since \"{}\" behind it names all of its stages, too; leave one of them out, or give each its own, as in full@0,none@1-",
        what, print(Recomputation{{asked.parts[i]}, std::nullopt}), print(rest)));
  }
}

}  // namespace

Recomputation parse_recomputation(const std::string& text, const std::string& what) {
  Recomputation asked;
  for (const std::string_view item : items_of(text)) {
    if (!item.empty() && is_digit(item.front()) && !asked.parts.empty() &&
        !asked.parts.back().everywhere()) {
      add_range(item, asked.parts.back(), what);
      continue;
    }
    const std::size_t at = item.find('@');
    Recomputation::Part part;
    std::string_view where = at == std::string_view::npos ? "" : item.substr(at + 1);
    if (is_layers(item)) {
      part.how = {Rebuild::every, 1};
      where = item;
    } else {
      part.how = parse_way(item.substr(0, at), what);
    }
    if (is_layers(where)) {
      part.layers.push_back(parse_range(where.substr(layers_prefix.size()), "layers", what));
    } else if (at != std::string_view::npos) {
      part.stages.push_back(parse_range(where, "stages", what));
    }
    asked.parts.push_back(std::move(part));
  }
  check_each_decides(asked, what);
  return asked;
}

std::string print(const Recomputation& asked) {
  std::string text;
  for (const Recomputation::Part& part : asked.parts) {
    if (!text.empty()) text += ";";
    switch (part.how.rebuild) {
      case Rebuild::none:
        text += "none";
        break;
      case Rebuild::selective:
        text += "selective";
        break;
      case Rebuild::every:
        text += fmt::format("{}{}", block_prefix, part.how.every);
        break;
      case Rebuild::full:
        text += "full";
        break;
    }
    if (!part.stages.empty()) text += "@" + print_ranges(part.stages);
    if (!part.layers.empty())
      text += fmt::format("@{}{}", layers_prefix, print_ranges(part.layers));
  }
  return text.empty() ? "none" : text;
}

RecomputeStart parse_recompute_start(const std::string& text, const std::string& what) {
  return one_of(all_recompute_starts, text, what);
}

std::vector<StageRecomputation> by_stage(const Recomputation& asked, const Model& model,
                                         const Partition& partition) {
  std::vector<StageRecomputation> stages;
  if (asked.parts.empty()) return stages;
  const auto says = [](const Layer& layer) { return layer.selective_stash > Bytes{}; };
  std::vector<LayerAsked> layers = by_layer(asked, partition);
  const bool selective = std::any_of(layers.begin(), layers.end(), [](LayerAsked layer) {
    return layer.rebuild == Rebuild::selective;
  });
  if (selective && std::none_of(model.layers.begin(), model.layers.end(), says)) {
    throw UsageError(
        fmt::format("--recompute selective: no layer of {} says what selective recomputation "
                    "rebuilds (selective_stash_bytes); take full or every:N",
                    model.name.empty() ? "the model" : model.name));
  }
  std::vector<std::vector<LayerAsked>> of(as_size(partition.stages));
  std::vector<bool> any(of.size());  // of its layers has a selective stash
  for (std::size_t l = 0; l < layers.size(); ++l) {
    nth(of, partition.stage_of[l]).push_back(layers[l]);
    if (says(model.layers[l])) nth(any, partition.stage_of[l]) = true;
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

Time rebuilding_time(const Layer& layer, Rebuild how) {
  if (how == Rebuild::selective) return layer.selective_forward;
  return layer.recompute > Time{} ? layer.recompute : layer.forward;
}

Offloading parse_offloading(const std::string& text, const std::string& what) {
  Offloading asked;
  if (text == "none") {
    asked.none = true;
    return asked;
  }
  if (text == "all") {
    asked.all = true;
    return asked;
  }
  if (text.empty() || text.front() != '@') {
    throw UsageError(fmt::format("{} is none, all or stages such as @0,2-3 (not \"{}\"{})", what,
                                 text, did_you_mean(text, {"none", "all"})));
  }
  for (const std::string_view item : items_of(std::string_view(text).substr(1))) {
    asked.stages.push_back(parse_range(item, "stages", what));
  }
  return asked;
}

std::string print(const Offloading& asked) {
  if (asked.all) return "all";
  return asked.stages.empty() ? "none" : "@" + print_ranges(asked.stages);
}

std::vector<bool> by_stage(const Offloading& asked, int stages) {
  std::vector<bool> copied;
  if (!asked.all && asked.stages.empty()) return copied;
  copied.resize(as_size(stages), asked.all);
  if (asked.all) return copied;
  for_numbers(asked.stages, "stage", stages, "--offload", [&](int s) { nth(copied, s) = true; });
  return copied;
}

}  // namespace stageline
