// Reads what a user asks to recompute or to offload, and writes it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "cost_models/recomputation.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/names.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

constexpr std::string_view block_prefix = "every:";
constexpr std::string_view layers_prefix = "layers:";
constexpr std::string_view modules_prefix = "modules:";
constexpr std::string_view first_prefix = "block:";
constexpr std::string_view forms =
    "none, selective, modules:NAME[+NAME…], ops, full, every:N or block:N, with @STAGES, "
    "@layers:LAYERS or for all";

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

StageRecomputation of_modules(std::vector<std::string> modules) {
  StageRecomputation how{Rebuild::selective, 1};
  how.modules = std::move(modules);
  return how;
}

// "moe_act+layernorm": in the order of their letters, each once.
StageRecomputation parse_modules(std::string_view text, const std::string& what) {
  std::vector<std::string> modules;
  std::string_view rest = text;
  while (true) {
    const std::size_t plus = rest.find('+');
    const std::string_view one = rest.substr(0, plus);
    if (one.empty()) {
      throw UsageError(
          fmt::format("{}: modules: names modules joined by +, such as modules:moe_act+layernorm "
                      "(not \"{}\")",
                      what, text));
    }
    if (one == ops_module) {
      throw UsageError(fmt::format(
          "{}: ops says of every kernel of a block whether it runs again, and is no module beside "
          "others; write ops alone",
          what));
    }
    modules.emplace_back(one);
    if (plus == std::string_view::npos) break;
    rest.remove_prefix(plus + 1);
  }
  std::sort(modules.begin(), modules.end());
  const auto again = std::adjacent_find(modules.begin(), modules.end());
  if (again != modules.end()) {
    throw UsageError(fmt::format("{}: modules:{} names {} twice", what, text, *again));
  }
  const auto named = [&](std::string_view one) {
    return std::find(modules.begin(), modules.end(), one) != modules.end();
  };
  for (const std::string_view part : {"moe_act", "shared_experts"}) {
    if (!named("moe") || !named(part)) continue;
    throw UsageError(fmt::format(
        "{}: {} is part of moe, which makes it again already; leave one out", what, part));
  }
  return of_modules(std::move(modules));
}

StageRecomputation parse_way(std::string_view text, const std::string& what) {
  if (text == "none") return {Rebuild::none, 1};
  if (text == "selective") return {Rebuild::selective, 1};
  if (text == ops_module) return of_modules({std::string(ops_module)});
  if (text.starts_with(modules_prefix)) {
    return parse_modules(text.substr(modules_prefix.size()), what);
  }
  if (text == "full") return {Rebuild::full, 1};
  if (text.substr(0, block_prefix.size()) == block_prefix) {
    const int every = parse_number<int>(text.substr(block_prefix.size())).value_or(0);
    if (every >= 1) return {Rebuild::every, every};
    throw UsageError(fmt::format(
        "{}: {}: N of every:N is a whole number of layers from 1, those of a block", what, text));
  }
  throw UsageError(fmt::format(
      "{} is {} (not \"{}\"{})", what, forms, text,
      did_you_mean(std::string(text),
                   {"none", "selective", "full", "every:1", "block:1", "ops", "modules:moe_act"})));
}

// "block:2", into the part.
void parse_first_blocks(std::string_view text, Recomputation::Part& part, const std::string& what) {
  part.how = {Rebuild::every, 1};
  part.first_blocks = parse_number<int>(text.substr(first_prefix.size())).value_or(0);
  if (part.first_blocks >= 1) return;
  throw UsageError(fmt::format(
      "{}: {}: N of block:N is a whole number of blocks from 1, the first ones of a stage", what,
      text));
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
  const std::vector<NumberRange>& own_stages = parts[at].stages;
  const std::vector<NumberRange>& own_layers = parts[at].layers;
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
    } else if (item.starts_with(first_prefix)) {
      parse_first_blocks(item.substr(0, at), part, what);
    } else {
      part.how = parse_way(item.substr(0, at), what);
    }
    if (is_layers(where) && part.first_blocks > 0) {
      throw UsageError(fmt::format(
          "{}: block:N is the first blocks of each stage, and takes stages behind @, no layers; "
          "take {} for these",
          what, where));
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
        if (part.how.modules.empty()) {
          text += "selective";
        } else if (part.how.modules.front() == ops_module) {
          text += ops_module;
        } else {
          text += fmt::format("{}{}", modules_prefix, fmt::join(part.how.modules, "+"));
        }
        break;
      case Rebuild::every:
        text += part.first_blocks > 0 ? fmt::format("{}{}", first_prefix, part.first_blocks)
                                      : fmt::format("{}{}", block_prefix, part.how.every);
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
  if (text.starts_with(first_prefix)) {
    const auto blocks = parse_number<int>(std::string_view(text).substr(first_prefix.size()));
    if (blocks && *blocks >= 1) {
      asked.blocks = *blocks;
      return asked;
    }
    throw UsageError(fmt::format(
        "{}: N of block:N is a whole number of blocks from 1, the first ones of a stage (not \"{}\")",
        what, text.substr(first_prefix.size())));
  }
  if (text.empty() || text.front() != '@') {
    throw UsageError(fmt::format("{} is none, all, block:N or stages such as @0,2-3 (not \"{}\"{})",
                                 what, text, did_you_mean(text, {"none", "all", "block:1"})));
  }
  for (const std::string_view item : items_of(std::string_view(text).substr(1))) {
    asked.stages.push_back(parse_range(item, "stages", what));
  }
  return asked;
}

std::string print(const Offloading& asked) {
  if (asked.all) return "all";
  if (asked.blocks > 0) return fmt::format("{}{}", first_prefix, asked.blocks);
  return asked.stages.empty() ? "none" : "@" + print_ranges(asked.stages);
}

}  // namespace stageline
