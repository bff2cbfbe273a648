// Reads fields, names and device kinds of cluster files.
#include "traces/native/cluster_parts.hpp"

#include <algorithm>

#include "sim/base/index.hpp"
#include "sim/transport.hpp"
#include "traces/traces.hpp"

namespace stageline {

Bandwidth read_bandwidth(const JsonNode& node) {
  return with_unit(node, parse_bandwidth, "12GB/s");
}

Time read_latency(const JsonNode& node) { return with_unit(node, parse_time, "5us"); }

Bytes read_reserve(const JsonNode& node) { return with_unit(node, parse_bytes, "2GB"); }

std::optional<Bytes> read_memory(const JsonNode& node) {
  const std::optional<JsonNode> found = node.find("memory");
  if (!found) return {};
  if (found->kind() == JsonKind::number) return found->bytes();
  return with_unit(*found, parse_bytes, "80GB");
}

Transport read_transport(const JsonNode& node, Tier tier, Bandwidth& bandwidth) {
  const std::optional<JsonNode> found = node.find("transport");
  if (!found) return Transport::stated;
  const struct {
    const char* word;
    Tier tier;
    Transport transport;
  } each[] = {{"rdma", Tier::network, Transport::stated},
              {"tcp", Tier::network, Transport::tcp},
              {"peer", Tier::pcie, Transport::stated},
              {"host", Tier::pcie, Transport::host}};
  std::vector<std::string> words;
  for (const auto& one : each) {
    words.emplace_back(one.word);
    if (found->text() != one.word) continue;
    if (tier != one.tier) {
      found->refuse(fmt::format("the transport {} is of links of tier {}, and this one is of {}",
                                one.word, name(one.tier), name(tier)));
    }
    if (one.transport == Transport::tcp) bandwidth = std::min(bandwidth, most_over_tcp);
    return one.transport;
  }
  found->refuse(fmt::format(
      "there is no transport {}{}; a link of tier network is rdma or tcp, one of tier pcie peer "
      "(devices reach each other) or host (through its memory)",
      in_quotes(found->text()), suggestion(found->text(), words)));
}

double positive_or(const JsonNode& node, std::string_view key, double fallback) {
  const std::optional<JsonNode> found = node.find(key);
  return found ? found->positive() : fallback;
}

std::vector<JsonNode> list_or_nothing(const JsonNode& root, std::string_view key) {
  const std::optional<JsonNode> found = root.find(key);
  return found ? found->items() : std::vector<JsonNode>{};
}

std::string read_name(const JsonNode& node) {
  std::string name = node.text();
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), plain)) {
    node.refuse(fmt::format("a name is made of letters, digits, '_', '-' and '.' (it is {})",
                            in_quotes(name)));
  }
  return name;
}

int NameTable::add(const JsonNode& node, const std::string& name) {
  const auto [found, is_new] = index_.emplace(name, static_cast<int>(names_.size()));
  if (!is_new) node.refuse(fmt::format("the name {} appears twice", in_quotes(name)));
  names_.push_back(name);
  return found->second;
}

int NameTable::at(const JsonNode& node, std::string_view what) const {
  const std::string name = node.text();
  const std::optional<int> found = find(name);
  if (!found) {
    node.refuse(
        fmt::format("there is no {} {}{}", what, in_quotes(name), suggestion(name, names_)));
  }
  return *found;
}

std::optional<int> NameTable::find(const std::string& name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return {};
  return found->second;
}

std::vector<int> read_ends(const JsonNode& node, const NameTable& nodes) {
  const std::string text = node.text();
  if (text.empty() || text.back() != '*') return {nodes.at(node, "device, host or switch")};
  const std::string_view prefix = std::string_view(text).substr(0, text.size() - 1);
  std::vector<int> ends;
  for (std::size_t i = 0; i < nodes.names().size(); ++i) {
    if (nodes.names()[i].compare(0, prefix.size(), prefix) == 0)
      ends.push_back(static_cast<int>(i));
  }
  if (ends.empty()) {
    node.refuse(
        fmt::format("no device, host or switch has a name that begins with {}", in_quotes(prefix)));
  }
  return ends;
}

void check_reserve(const JsonNode& node, std::optional<Bytes> memory, Bytes reserve) {
  if (!memory || reserve <= *memory) return;
  node.refuse(
      fmt::format("a reserve of {} is more than the memory of {}", print(reserve), print(*memory)));
}

DeviceKind read_kind(const JsonNode& node, bool driver) {
  node.check_keys(
      {"name"}, {"title", "memory", "reserve", "driver", "memory_bandwidth", "peak", "power_watts",
                 "idle_watts", "power_source", "price_per_hour", "price_source", "source"});
  DeviceKind kind;
  kind.name = read_name(node.at("name"));
  kind.title = node.text_or_empty("title");
  const auto read_memories = [&](const JsonNode& from) {
    if (const auto memory = read_memory(from)) kind.memory = memory;
    const auto reserve = from.find("reserve");
    if (!reserve) return;
    kind.reserve = read_reserve(*reserve);
    check_reserve(*reserve, kind.memory, kind.reserve);
  };
  read_memories(node);
  if (const auto found = node.find("driver")) {
    found->check_keys({}, {"memory", "reserve", "source"});
    static_cast<void>(found->text_or_empty("source"));  // for people
    const DeviceKind as_sheet = kind;
    read_memories(*found);
    if (!driver) kind = as_sheet;
  }
  if (const auto found = node.find("memory_bandwidth")) {
    kind.memory_bandwidth = read_bandwidth(*found);
  }
  if (const auto peak = node.find("peak")) {
    peak->check_keys({}, {"fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4"});
    for (const JsonNode& rate : peak->members()) {
      kind.peak.push_back({rate.key(), rate.positive()});
    }
  }
  kind.power_watts = positive_or(node, "power_watts", 0);
  kind.idle_watts = positive_or(node, "idle_watts", 0);
  if (kind.power_watts > 0 && kind.idle_watts > kind.power_watts) {
    node.at("idle_watts")
        .refuse(fmt::format("{:g} W while it waits are more than the {:g} W of \"power_watts\"",
                            kind.idle_watts, kind.power_watts));
  }
  kind.power_source = node.text_or_empty("power_source");
  kind.price_per_hour = positive_or(node, "price_per_hour", 0);
  kind.price_source = node.text_or_empty("price_source");
  kind.source = node.text_or_empty("source");
  return kind;
}

std::vector<DeviceKind> kinds_of(const Bundled& bundled, bool driver) {
  const std::string file(bundled.name);
  const JsonValue tree = parse_json(std::string(bundled.text), file);
  std::vector<DeviceKind> kinds;
  for (const JsonNode& node : list_or_nothing(JsonNode(tree, "", file), "kinds")) {
    kinds.push_back(read_kind(node, driver));
  }
  return kinds;
}

namespace {

std::vector<DeviceKind> read_bundled_kinds(bool driver) {
  std::vector<DeviceKind> kinds;
  for (const std::vector<Bundled>* const files : {&bundled_clusters(), &bundled_kind_lists()}) {
    for (const Bundled& bundled : *files) {
      for (DeviceKind& kind : kinds_of(bundled, driver)) {
        const bool known = std::any_of(kinds.begin(), kinds.end(),
                                       [&](const DeviceKind& k) { return k.name == kind.name; });
        if (!known) kinds.push_back(std::move(kind));
      }
    }
  }
  return kinds;
}

}  // namespace

// A search prices hundreds of models, each with all kinds at hand: the files are read once.
std::vector<DeviceKind> bundled_kinds(bool driver) {
  static const std::vector<DeviceKind> by_data_sheet = read_bundled_kinds(false);
  static const std::vector<DeviceKind> by_driver = read_bundled_kinds(true);
  return driver ? by_driver : by_data_sheet;
}

std::array<double, tiers> read_overlap(const JsonNode& node, std::string_view what) {
  std::vector<std::string> names;
  for (const Tier tier : all_tiers) names.emplace_back(name(tier));
  node.check_keys({}, names);
  std::array<double, tiers> slowdown{};
  for (const Tier tier : all_tiers) {
    const auto found = node.find(name(tier));
    if (!found) continue;
    const double share = found->number();
    if (!(share >= 0 && share <= 1)) {
      found->refuse(
          fmt::format("{} takes 1 + γ times as long, with γ from 0 to 1 (it is {})", what, share));
    }
    slowdown[as_size(tier)] = share;
  }
  return slowdown;
}

}  // namespace stageline
