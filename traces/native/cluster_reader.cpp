// Reads cluster files, which traces/README.md and cluster.schema.json describe.
#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "traces/json/parts.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

constexpr std::string_view format_name = "stageline-cluster 1";
constexpr int most_devices = 4096;
constexpr std::size_t most_links = 1'000'000;

// Parses a text with a unit by one of the parse_* functions of sim/units.hpp.
template <class Parse>
auto with_unit(const JsonNode& node, Parse parse) {
  const std::string text = node.text();
  try {
    return parse(text);
  } catch (const std::invalid_argument& error) {
    node.refuse(error.what());
  }
}

// "80GB", or a number of bytes.
Bytes read_size(const JsonNode& node) {
  return node.kind() == JsonKind::number ? node.bytes() : with_unit(node, parse_bytes);
}

std::optional<Bytes> read_memory(const JsonNode& node) {
  const std::optional<JsonNode> found = node.find("memory");
  if (!found) return {};
  return read_size(*found);
}

double positive_or(const JsonNode& node, std::string_view key, double fallback) {
  const std::optional<JsonNode> found = node.find(key);
  return found ? found->positive() : fallback;
}

std::vector<JsonNode> list_or_nothing(const JsonNode& root, std::string_view key) {
  const std::optional<JsonNode> found = root.find(key);
  return found ? found->items() : std::vector<JsonNode>{};
}

// Names of nodes and kinds are used in programs and options too, so they are plain words.
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

DeviceKind read_kind(const JsonNode& node) {
  node.check_keys({"name"}, {"title", "memory", "memory_bandwidth", "peak", "power_watts",
                             "price_per_hour", "source"});
  DeviceKind kind;
  kind.name = read_name(node.at("name"));
  kind.title = node.text_or_empty("title");
  kind.memory = read_memory(node);
  if (const auto found = node.find("memory_bandwidth")) {
    kind.memory_bandwidth = with_unit(*found, parse_bandwidth);
  }
  if (const auto peak = node.find("peak")) {
    peak->check_keys({}, {"fp64", "fp32", "tf32", "bf16", "fp16", "fp8"});
    for (const JsonNode& rate : peak->members()) {
      kind.peak.push_back({rate.key(), rate.positive()});
    }
  }
  kind.power_watts = positive_or(node, "power_watts", 0);
  kind.price_per_hour = positive_or(node, "price_per_hour", 0);
  kind.source = node.text_or_empty("source");
  return kind;
}

// Maps names to indices and remembers where each was defined.
class NameTable {
 public:
  // `node` is the value that defines the name.
  int add(const JsonNode& node, const std::string& name) {
    const auto [found, is_new] = index_.emplace(name, static_cast<int>(names_.size()));
    if (!is_new) node.refuse(fmt::format("the name {} appears twice", in_quotes(name)));
    names_.push_back(name);
    return found->second;
  }
  int at(const JsonNode& node, std::string_view what) const {
    const std::string name = node.text();
    const auto found = index_.find(name);
    if (found == index_.end()) {
      node.refuse(fmt::format("there is no {} {}{}", what, in_quotes(name), hint(name)));
    }
    return found->second;
  }
  std::string hint(const std::string& name) const { return suggestion(name, names_); }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::string, int> index_;
  std::vector<std::string> names_;
};

// Reads one entry of "devices": one device, or `count` of them.
void read_devices(const JsonNode& node, const NameTable& kinds, const NameTable& hosts,
                  NameTable& nodes, Cluster& cluster) {
  node.check_keys({"name"}, {"count", "kind", "rate", "memory", "host", "op_overhead"});
  Device device;
  if (const auto found = node.find("kind")) device.kind = kinds.at(*found, "kind");
  if (const auto found = node.find("host")) device.host = hosts.at(*found, "host");
  device.rate = positive_or(node, "rate", 1);
  if (const auto found = node.find("op_overhead")) {
    device.op_overhead = with_unit(*found, parse_time);
  }
  device.memory = read_memory(node);
  if (!device.memory && device.kind >= 0) {
    device.memory = nth(cluster.kinds, device.kind).memory;
  }
  const std::string name = read_name(node.at("name"));
  const std::optional<JsonNode> count = node.find("count");
  const int devices = count ? static_cast<int>(count->whole(1, most_devices)) : 1;
  if (cluster.devices.size() + as_size(devices) > most_devices) {
    node.refuse(fmt::format("a cluster has at most {} devices", most_devices));
  }
  for (int i = 0; i < devices; ++i) {
    device.name = count ? fmt::format("{}{}", name, i) : name;
    nodes.add(node.at("name"), device.name);
    cluster.devices.push_back(device);
  }
}

// The nodes that a pattern such as "gpu0" or "gpu*" names.
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

// Reads one entry of "links": one link, or with a '*' one per pair of ends (each pair once).
void read_links(const JsonNode& node, const NameTable& nodes, Cluster& cluster) {
  node.check_keys({"from", "to", "bandwidth"}, {"latency", "latency_back", "duplex", "name"});
  Link link;
  link.bandwidth = with_unit(node.at("bandwidth"), parse_bandwidth);
  if (const auto found = node.find("latency")) link.latency = with_unit(*found, parse_time);
  if (const auto found = node.find("latency_back")) {
    link.latency_back = with_unit(*found, parse_time);
  }
  if (const auto found = node.find("duplex")) {
    const std::string duplex = found->text();
    if (duplex != "full" && duplex != "half") {
      found->refuse(fmt::format("duplex is \"full\" or \"half\", not {}", in_quotes(duplex)));
    }
    link.duplex = duplex == "full" ? Duplex::full : Duplex::half;
  }
  const std::string name = node.find("name") ? read_name(node.at("name")) : std::string{};
  const std::vector<int> from = read_ends(node.at("from"), nodes);
  const std::vector<int> to = read_ends(node.at("to"), nodes);
  const auto has = [](const std::vector<int>& ends, int end) {
    return std::binary_search(ends.begin(), ends.end(), end);
  };
  const bool several = from.size() > 1 || to.size() > 1;
  bool any = false;
  for (const int a : from) {
    for (const int b : to) {
      if (a == b || (a > b && has(from, b) && has(to, a))) continue;
      any = true;
      if (cluster.links.size() >= most_links) {
        node.refuse(fmt::format("a cluster has at most {} links", most_links));
      }
      link.from = a;
      link.to = b;
      const std::string ends = fmt::format("{}-{}", nth(nodes.names(), a), nth(nodes.names(), b));
      link.name = name.empty() ? ends : several ? fmt::format("{}.{}", name, ends) : name;
      cluster.links.push_back(link);
    }
  }
  if (!any) node.refuse("a link must join two different nodes; this one leads back to where it is");
}

}  // namespace

Cluster read_cluster(const std::string& json_text, const std::string& file) {
  const JsonValue tree = parse_json(json_text, file);
  return read_cluster(JsonNode(tree, "", file));
}

Cluster read_cluster(const JsonNode& root) {
  if (root.kind() != JsonKind::object) root.refuse("a cluster is one JSON object");
  if (const std::string format = root.at("format").text(); format != format_name) {
    root.at("format").refuse(
        fmt::format("a cluster has \"{}\" here, not {}", format_name, in_quotes(format)));
  }
  root.check_keys({"format", "name", "devices"}, {"source", "kinds", "hosts", "switches", "links",
                                                  "pair_overlap", "interference"});
  Cluster cluster;
  cluster.name = root.at("name").text();
  cluster.source = root.text_or_empty("source");

  NameTable kinds;
  for (const JsonNode& node : list_or_nothing(root, "kinds")) {
    cluster.kinds.push_back(read_kind(node));
    kinds.add(node.at("name"), cluster.kinds.back().name);
  }
  NameTable hosts;
  const std::vector<JsonNode> host_nodes = list_or_nothing(root, "hosts");
  for (const JsonNode& node : host_nodes) {
    node.check_keys({"name"}, {"memory"});
    cluster.hosts.push_back({read_name(node.at("name")), read_memory(node)});
    hosts.add(node.at("name"), cluster.hosts.back().name);
  }
  // Numbered as in Link: devices, hosts, switches.
  NameTable nodes;
  const std::vector<JsonNode> devices = root.at("devices").items();
  if (devices.empty()) root.at("devices").refuse("a cluster has at least one device");
  for (const JsonNode& node : devices) read_devices(node, kinds, hosts, nodes, cluster);
  for (const JsonNode& node : host_nodes) nodes.add(node.at("name"), node.at("name").text());
  for (const JsonNode& node : list_or_nothing(root, "switches")) {
    cluster.switches.push_back(read_name(node));
    nodes.add(node, cluster.switches.back());
  }
  for (const JsonNode& node : list_or_nothing(root, "links")) read_links(node, nodes, cluster);
  if (const auto found = root.find("pair_overlap")) {
    cluster.pair_overlap = found->positive();
    if (cluster.pair_overlap > 1) {
      found->refuse(fmt::format("a share is at most 1 (it is {})", cluster.pair_overlap));
    }
  }
  for (const JsonNode& node : list_or_nothing(root, "interference")) {
    const double slowdown = node.positive();
    if (slowdown < 1) {
      node.refuse(fmt::format(
          "other devices cannot make an op faster: a slowdown is at least 1 (it is {})", slowdown));
    }
    cluster.interference.push_back(slowdown);
  }
  return cluster;
}

}  // namespace stageline
