// Reads what a user asks to recompute or to offload, and decides it stage by stage.
#include "cost_models/recomputation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "sim/names.hpp"
#include "sim/numbers.hpp"

namespace stageline {
namespace {

constexpr std::string_view block_prefix = "every:";
constexpr std::string_view forms = "none, selective, full or every:N, with @STAGES or for all";

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

StageRange parse_range(std::string_view text, const std::string& what) {
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
            fmt::format("{}: the stages {} run backwards; write {}-{}", what, text, *last, *first));
      }
    }
  }
  throw UsageError(fmt::format(
      "{}: stages are numbers from 0 and ranges, such as 0,2-3 or 4- (not \"{}\")", what, text));
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

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "0,2-3,5-"
std::string print(const std::vector<StageRange>& ranges) {
  std::string text;
  for (const StageRange& range : ranges) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", range.first);
    if (!range.last) text += "-";
    if (range.last.value_or(range.first) != range.first) text += fmt::format("-{}", *range.last);
  }
  return text;
}

// Calls each(stage) for the stages of the ranges, or for all where there are none.
template <class Each>
void for_stages(const std::vector<StageRange>& ranges, int stages, std::string_view flag,
                Each&& each) {
  if (ranges.empty()) {
    for (int s = 0; s < stages; ++s) each(s);
  }
  for (const StageRange& range : ranges) {
    const int last = range.last.value_or(std::max(range.first, stages - 1));
    if (last >= stages) {
      throw UsageError(fmt::format("{} names stage {}, but there are {} stages, 0 to {}", flag,
                                   std::max(range.first, last), stages, stages - 1));
    }
    for (int s = range.first; s <= last; ++s) each(s);
  }
}

// By stage: the layers, and what selective recomputation rebuilds of them.
struct StageLayers {
  int layers = 0;
  bool selective = false;
};

std::vector<StageLayers> layers_by_stage(const Model& model, const Partition& partition) {
  std::vector<StageLayers> stages(as_size(partition.stages));
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    StageLayers& stage = nth(stages, partition.stage_of[l]);
    ++stage.layers;
    stage.selective = stage.selective || model.layers[l].selective_stash > Bytes{};
  }
  return stages;
}

}  // namespace

Recomputation parse_recomputation(const std::string& text, const std::string& what) {
  Recomputation asked;
  for (const std::string_view item : items_of(text)) {
    if (!item.empty() && is_digit(item.front()) && !asked.parts.empty() &&
        !asked.parts.back().stages.empty()) {
      asked.parts.back().stages.push_back(parse_range(item, what));
      continue;
    }
    const std::size_t at = item.find('@');
    Recomputation::Part part;
    part.how = parse_way(item.substr(0, at), what);
    if (at != std::string_view::npos) {
      part.stages.push_back(parse_range(item.substr(at + 1), what));
    }
    asked.parts.push_back(std::move(part));
  }
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
    if (!part.stages.empty()) text += "@" + print(part.stages);
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
  stages.resize(as_size(partition.stages));
  bool selective = false;
  for (const Recomputation::Part& part : asked.parts) {
    for_stages(part.stages, partition.stages, "--recompute", [&](int s) {
      nth(stages, s) = part.how;
      selective = selective || part.how.rebuild == Rebuild::selective;
    });
  }
  const std::vector<StageLayers> layers = layers_by_stage(model, partition);
  const auto says = [](const StageLayers& stage) { return stage.selective; };
  if (selective && std::none_of(layers.begin(), layers.end(), says)) {
    throw UsageError(
        fmt::format("--recompute selective: no layer of {} says what selective recomputation "
                    "rebuilds (selective_stash); take full or every:N",
                    model.name.empty() ? "the model" : model.name));
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].rebuild == Rebuild::every && stages[s].every >= layers[s].layers) {
      stages[s] = {Rebuild::full, 1};
    }
    if (stages[s].rebuild == Rebuild::selective && !layers[s].selective) stages[s] = {};
  }
  return stages;
}

Time rebuilding_time(const Layer& layer, const StageRecomputation& how) {
  if (how.rebuild == Rebuild::selective) return layer.selective_forward;
  return layer.recompute > Time{} ? layer.recompute : layer.forward;
}

Offloading parse_offloading(const std::string& text, const std::string& what) {
  Offloading asked;
  if (text == "none") return asked;
  if (text == "all") {
    asked.all = true;
    return asked;
  }
  if (text.empty() || text.front() != '@') {
    throw UsageError(fmt::format("{} is none, all or stages such as @0,2-3 (not \"{}\"{})", what,
                                 text, did_you_mean(text, {"none", "all"})));
  }
  for (const std::string_view item : items_of(std::string_view(text).substr(1))) {
    asked.stages.push_back(parse_range(item, what));
  }
  return asked;
}

std::string print(const Offloading& asked) {
  if (asked.all) return "all";
  return asked.stages.empty() ? "none" : "@" + print(asked.stages);
}

std::vector<bool> by_stage(const Offloading& asked, int stages) {
  std::vector<bool> copied;
  if (!asked.all && asked.stages.empty()) return copied;
  copied.resize(as_size(stages), asked.all);
  if (asked.all) return copied;
  for_stages(asked.stages, stages, "--offload", [&](int s) { nth(copied, s) = true; });
  return copied;
}

}  // namespace stageline
