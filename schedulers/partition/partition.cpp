// The edges of partitioning: names and explicit cuts.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "schedulers/partition/cuts.hpp"
#include "schedulers/partition/megatron.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

int layers_of(const PartitionRequest& request) {
  return static_cast<int>(request.model.layers.size());
}

// "layer 4", "layers 4 to 6"
std::string layers_text(int first, int last) {
  return first == last ? fmt::format("layer {}", first)
                       : fmt::format("layers {} to {}", first, last);
}

struct Range {
  int first = 0;
  int last = 0;
  std::string text;
};

std::optional<int> whole_number(const std::string& text) {
  const auto value = parse_number<int>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

// One item "3-7", "12-" or "5"; `layers` closes an open end.
Range parse_range(const std::string& item, int layers, const std::string& text) {
  const std::size_t dash = item.find('-');
  const auto first = whole_number(item.substr(0, dash));
  const std::string end = dash == std::string::npos ? item : item.substr(dash + 1);
  const auto last = end.empty() && dash != std::string::npos ? layers - 1 : whole_number(end);
  if (!first || !last) {
    throw UsageError(fmt::format(
        "partition \"{}\": \"{}\" is no layer range; write the first and the last layer "
        "of each stage as whole numbers, like 0-5,6-11,12-",
        text, item));
  }
  for (const int layer : {*first, *last}) {
    if (layer < layers) continue;
    throw UsageError(fmt::format(
        "partition \"{}\": \"{}\" names layer {}, but the model has layers 0 to {} only", text,
        item, layer, layers - 1));
  }
  if (*last < *first) {
    throw UsageError(fmt::format(
        "partition \"{}\": \"{}\" ends before it begins; write the smaller number first", text,
        item));
  }
  return {*first, *last, item};
}

// The items of "0-5,6-11", or of a cut as it is printed, "0-5 | 6-11".
std::vector<std::string> range_items(std::string text) {
  std::erase(text, ' ');
  std::replace(text.begin(), text.end(), '|', ',');
  return split_at_commas(text);
}

std::vector<int> cuts_from_ranges(const std::string& text, int layers) {
  std::vector<int> last_layers;
  Range before{0, -1, ""};
  for (const std::string& item : range_items(text)) {
    const Range range = parse_range(item, layers, text);
    if (range.first > before.last + 1) {
      throw UsageError(
          fmt::format("partition \"{}\": {} {} missing before \"{}\"; the ranges must follow each "
                      "other without "
                      "a gap, from layer 0 to layer {}",
                      text, layers_text(before.last + 1, range.first - 1),
                      range.first == before.last + 2 ? "is" : "are", range.text, layers - 1));
    }
    if (range.first <= before.last) {
      const bool overlap = range.last >= before.first && range.first >= before.first;
      throw UsageError(
          overlap ? fmt::format("partition \"{}\": {} {} in both \"{}\" and \"{}\"; each layer "
                                "belongs to one stage",
                                text, layers_text(range.first, std::min(range.last, before.last)),
                                range.first == std::min(range.last, before.last) ? "is" : "are",
                                before.text, range.text)
                  : fmt::format("partition \"{}\": \"{}\" comes after \"{}\" but begins before it; "
                                "stages are contiguous and in the order of the layers",
                                text, range.text, before.text));
    }
    last_layers.push_back(range.last);
    before = range;
  }
  if (before.last != layers - 1) {
    throw UsageError(fmt::format(
        "partition \"{}\": {} {} missing at the end; end the last range with a dash, \"{}-\", to "
        "reach the last layer",
        text, layers_text(before.last + 1, layers - 1), before.last + 2 == layers ? "is" : "are",
        before.first));
  }
  last_layers.pop_back();
  return last_layers;
}

// The items of a list of layer names. A name may hold commas itself ("Conv2d(3, 64)"), so the
// longest name that fits is taken before the text is cut at the next comma.
std::vector<std::string> name_items(const std::string& text,
                                    const std::vector<std::string>& names) {
  std::vector<std::string> items;
  std::size_t at = 0;
  while (at <= text.size()) {
    std::size_t length = std::min(text.find(',', at), text.size()) - at;
    for (const std::string& name : names) {
      const std::size_t end = at + name.size();
      if (name.size() > length && text.compare(at, name.size(), name) == 0 &&
          (end == text.size() || text[end] == ',')) {
        length = name.size();
      }
    }
    items.push_back(text.substr(at, length));
    at += length + 1;
  }
  return items;
}

std::vector<int> cuts_from_names(const std::string& text, const std::vector<std::string>& items,
                                 const std::vector<std::string>& names) {
  std::vector<int> last_layers;
  for (const std::string& item : items) {
    const auto found = std::find(names.begin(), names.end(), item);
    if (found == names.end()) {
      throw UsageError(fmt::format(
          "partition \"{}\": \"{}\" is no layer of the model, whose {} layers are \"{}\" to "
          "\"{}\"; "
          "name the last layer of every stage but the last{}",
          text, item, names.size(), names.front(), names.back(), did_you_mean(item, names)));
    }
    const auto layer = static_cast<int>(found - names.begin());
    const auto count = std::count(names.begin(), names.end(), item);
    if (count > 1) {
      throw UsageError(fmt::format(
          "partition \"{}\": {} layers are named \"{}\", the first is layer {}; give layer ranges, "
          "like 0-{},{}-",
          text, count, item, layer, layer, layer + 1));
    }
    if (!last_layers.empty() && layer <= last_layers.back()) {
      throw UsageError(
          fmt::format("partition \"{}\": \"{}\" is layer {} and comes after layer {}; name the "
                      "last layers of "
                      "the stages in the order of the model, each once",
                      text, item, layer, last_layers.back()));
    }
    last_layers.push_back(layer);
  }
  if (last_layers.back() + 1 == static_cast<int>(names.size())) {
    throw UsageError(fmt::format(
        "partition \"{}\": \"{}\" is the model's last layer, so nothing is left for the "
        "stage behind it; leave it out, the last stage is implied",
        text, items.back()));
  }
  return last_layers;
}

PartitionPlan plan_explicit(const PartitionRequest& request, const std::string& text,
                            const std::vector<int>& last_layers) {
  const int stages = static_cast<int>(last_layers.size()) + 1;
  const int devices = static_cast<int>(request.cluster.devices.size());
  const bool open = request.replicate && request.replicas.empty();  // the plan may say how many
  if (open ? stages > devices : stages != request.stages) {
    throw UsageError(open
                         ? fmt::format("partition \"{}\" has {} stages, but there are {} devices",
                                       text, stages, devices)
                         : fmt::format("partition \"{}\" has {} stage{}, but the schedule makes {} "
                                       "on {} device{}; give as many ranges as stages",
                                       text, stages, stages == 1 ? "" : "s", request.stages,
                                       devices, devices == 1 ? "" : "s"));
  }
  PartitionPlan plan = plan_from_cuts(request, last_layers, "");
  plan.reason = "as given; " + balance_of(request, plan.partition);
  return plan;
}

}  // namespace

PartitionPlan partition(const std::string& text, const PartitionRequest& request) {
  if (request.model.layers.empty()) throw UsageError("the model has no layers to partition");
  check_replicas(request);
  std::vector<std::string> known;
  const std::string head = text.substr(0, text.find(':'));
  for (const Partitioner* candidate : partitioners()) {
    known.emplace_back(candidate->name);
    if (candidate->name != head) continue;
    PartitionRequest asked = request;
    if (head.size() < text.size()) asked.options = text.substr(head.size() + 1);
    if (candidate->options.empty() && !asked.options.empty()) {
      throw UsageError(fmt::format("partitioner \"{}\" takes no options (\"{}\" was given)", head,
                                   asked.options));
    }
    return candidate->plan(asked);
  }

  std::vector<std::string> names;
  for (const Layer& layer : request.model.layers) names.push_back(layer.name);
  const std::vector<std::string> items = name_items(text, names);
  const auto is_layer = [&](const std::string& item) {
    return std::find(names.begin(), names.end(), item) != names.end();
  };
  const auto some = std::count_if(items.begin(), items.end(), is_layer);
  const bool numeric =
      !text.empty() && text.find_first_not_of("0123456789-,| ") == std::string::npos;
  if (numeric && some < static_cast<std::ptrdiff_t>(items.size())) {
    return plan_explicit(request, text, cuts_from_ranges(text, layers_of(request)));
  }
  if (some > 0) {
    return plan_explicit(request, text, cuts_from_names(text, items, names));
  }
  if (looks_like_megatron(text)) {
    return plan_explicit(request, text, cuts_from_megatron(text, request.model));
  }
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  known.insert(known.end(), names.begin(), names.end());
  throw UsageError(fmt::format(
      "partition \"{}\" is neither a partitioner ({}) nor layer ranges like 0-5,6-11,12- nor the "
      "names of the stages' last layers like {}{}",
      text, list, names.front(), did_you_mean(text.substr(0, text.find_first_of(":,")), known)));
}

}  // namespace stageline
