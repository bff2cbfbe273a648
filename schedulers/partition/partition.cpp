// The edges of partitioning: names, explicit cuts, and what all partitioners share.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "schedulers/partition/cuts.hpp"
#include "sim/errors.hpp"

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
  int value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
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

std::vector<int> cuts_from_ranges(const std::string& text, int layers) {
  std::vector<int> last_layers;
  Range before{0, -1, ""};
  for (const std::string& item : split_at_commas(text)) {
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
          overlap
              ? fmt::format("partition \"{}\": {} {} in both \"{}\" and \"{}\"; each layer "
                            "belongs to one stage",
                            text, layers_text(range.first, std::min(range.last, before.last)),
                            range.first == std::min(range.last, before.last) ? "is" : "are",
                            before.text, range.text)
              : fmt::format("partition \"{}\": \"{}\" stands behind \"{}\" but begins before it; "
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
          fmt::format("partition \"{}\": \"{}\" is layer {} and stands behind layer {}; name the "
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
  if (request.replicate ? stages > devices : stages != request.stages) {
    throw UsageError(request.replicate
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
  const bool numeric = !text.empty() && text.find_first_not_of("0123456789-,") == std::string::npos;
  if (numeric && some < static_cast<std::ptrdiff_t>(items.size())) {
    return plan_explicit(request, text, cuts_from_ranges(text, layers_of(request)));
  }
  if (some > 0) {
    return plan_explicit(request, text, cuts_from_names(text, items, names));
  }
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  known.insert(known.end(), names.begin(), names.end());
  throw UsageError(fmt::format(
      "partition \"{}\" is neither a partitioner ({}) nor layer ranges like 0-5,6-11,12- nor the "
      "names of the stages' last layers like {}{}",
      text, list, names.front(), did_you_mean(text.substr(0, text.find_first_of(":,")), known)));
}

void check_stages(const PartitionRequest& request) {
  if (request.stages >= 1 && request.stages <= layers_of(request)) return;
  throw UsageError(
      request.stages < 1
          ? fmt::format("a partition needs at least 1 stage ({} were asked for)", request.stages)
          : fmt::format("{} stages need at least {} layers, but the model \"{}\" has {}; use fewer "
                        "devices or a finer trace",
                        request.stages, request.stages, request.model.name, layers_of(request)));
}

PartitionPlan plan_from_cuts(const PartitionRequest& request, const std::vector<int>& last_layers,
                             std::string reason) {
  return {partition_from_cuts(last_layers, layers_of(request)),
          std::vector<int>(last_layers.size() + 1, 1),
          {},
          std::move(reason)};
}

double rate_of_stage(const Cluster& cluster, int stage) {
  if (cluster.devices.empty()) return 1;
  return cluster.devices[static_cast<std::size_t>(stage) % cluster.devices.size()].rate;
}

Time on_device(Time time, double rate) {
  if (rate == 1) return time;
  return Time{std::llround(static_cast<double>(time.count()) / rate)};
}

std::string balance_of(const PartitionRequest& request, const Partition& partition) {
  std::vector<Time> time(static_cast<std::size_t>(partition.stages));
  for (std::size_t layer = 0; layer < partition.stage_of.size(); ++layer) {
    const Layer& costs = request.model.layers[layer];
    time[static_cast<std::size_t>(partition.stage_of[layer])] += costs.forward + costs.backward;
  }
  Time largest{};
  double sum = 0;
  for (int stage = 0; stage < partition.stages; ++stage) {
    const Time here =
        on_device(time[static_cast<std::size_t>(stage)], rate_of_stage(request.cluster, stage));
    largest = std::max(largest, here);
    sum += static_cast<double>(here.count());
  }
  Bytes moved;
  for (const StageFlow& flow : stage_flows(partition, request.model)) moved += flow.bytes;
  const double over =
      sum == 0 ? 0 : 100 * (static_cast<double>(largest.count()) * partition.stages / sum - 1);
  return fmt::format("largest stage {}, {:.1f} % over the mean; {} a micro-batch between stages",
                     print(largest), over, print(moved));
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> items;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    items.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return items;
}

}  // namespace stageline
