// Reads cluster files, which traces/README.md and cluster.schema.json describe.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "traces/json/parts.hpp"
#include "traces/native/cluster_parts.hpp"
#include "traces/native/measured_collectives.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

constexpr std::string_view format_name = "stageline-cluster 1";
constexpr int most_devices = 65536;
constexpr std::size_t most_links = 1'000'000;

// The kind of a device: one of the file, or a bundled one, which the cluster gets.
int read_kind_of(const JsonNode& node, bool driver, NameTable& kinds, Cluster& cluster) {
  const std::string name = node.text();
  if (const auto known = kinds.find(name)) return *known;
  std::vector<std::string> names = kinds.names();
  for (DeviceKind& kind : bundled_kinds(driver)) {
    if (kind.name == name) {
      cluster.kinds.push_back(std::move(kind));
      return kinds.add(node, name);
    }
    names.push_back(kind.name);
  }
  node.refuse(fmt::format("there is no kind {}{}", in_quotes(name), suggestion(name, names)));
}

// Reads one entry of "devices": one device, or `count` of them.
void read_devices(const JsonNode& node, bool driver, NameTable& kinds, const NameTable& hosts,
                  NameTable& nodes, Cluster& cluster) {
  node.check_keys({"name"}, {"count", "kind", "rate", "memory_rate", "memory", "reserve", "host",
                             "op_overhead"});
  Device device;
  if (const auto found = node.find("kind")) {
    device.kind = read_kind_of(*found, driver, kinds, cluster);
    device.reserve = nth(cluster.kinds, device.kind).reserve;
  }
  if (const auto found = node.find("host")) device.host = hosts.at(*found, "host");
  device.rate = positive_or(node, "rate", 1);
  device.memory_rate = positive_or(node, "memory_rate", 0);
  if (const auto found = node.find("op_overhead")) device.op_overhead = read_latency(*found);
  device.memory = read_memory(node);
  if (!device.memory && device.kind >= 0) {
    device.memory = nth(cluster.kinds, device.kind).memory;
  }
  const std::optional<JsonNode> reserve = node.find("reserve");
  if (reserve) device.reserve = read_reserve(*reserve);
  check_reserve(reserve.value_or(node), device.memory, device.reserve);
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

Tier read_tier(const JsonNode& node) {
  std::vector<std::string> names;
  for (const Tier tier : all_tiers) {
    if (name(tier) == node.text()) return tier;
    names.emplace_back(name(tier));
  }
  node.refuse(fmt::format("there is no tier {}{}; a link is one of {}", in_quotes(node.text()),
                          suggestion(node.text(), names), fmt::join(names, ", ")));
}

// Reads one entry of "links": one link, or with a '*' one per pair of ends (each pair once).
void read_links(const JsonNode& node, const NameTable& nodes, Cluster& cluster) {
  node.check_keys({"from", "to", "bandwidth"},
                  {"latency", "latency_back", "duplex", "tier", "transport", "name"});
  Link link;
  link.bandwidth = read_bandwidth(node.at("bandwidth"));
  if (const auto found = node.find("latency")) link.latency = read_latency(*found);
  if (const auto found = node.find("latency_back")) link.latency_back = read_latency(*found);
  if (const auto found = node.find("tier")) link.tier = read_tier(*found);
  link.transport = read_transport(node, link.tier, link.bandwidth);
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

// "domain": how many machines have which switches in common.
void read_domain(const JsonNode& node, const Cluster& machine, int in_file, Machines& machines) {
  node.check_keys({"machines", "switches"}, {});
  const JsonNode size = node.at("machines");
  machines.domain = static_cast<int>(size.whole(2, most_devices));
  if (in_file % machines.domain != 0) {
    size.refuse(fmt::format("{} machine{} cannot be divided into domains of {}", in_file,
                            in_file == 1 ? "" : "s", machines.domain));
  }
  const std::vector<JsonNode> names = node.at("switches").items();
  if (names.empty()) {
    node.at("switches").refuse("a domain has at least one switch that its machines share");
  }
  for (const JsonNode& name : names) {
    const auto found = std::find(machine.switches.begin(), machine.switches.end(), name.text());
    if (found == machine.switches.end()) {
      name.refuse(fmt::format("there is no switch {}{}", in_quotes(name.text()),
                              suggestion(name.text(), machine.switches)));
    }
    nth(machines.shared, found - machine.switches.begin()) = true;
  }
}

// How often the machine is repeated. Refuses machines that nothing joins.
Machines read_machines(const JsonNode& root, const Cluster& machine, const NameTable& nodes,
                       int in_file, int times) {
  Machines machines;
  machines.count = in_file * times;
  machines.shared.resize(machine.switches.size());
  if (const auto found = root.find("domain")) read_domain(*found, machine, in_file, machines);
  if (const auto found = root.find("network")) {
    machines.fabric = read_fabric(*found, machine, nodes);
  }
  if (machines.domains() > 1 && !machines.fabric) {
    root.refuse(fmt::format(
        "{} machines need a \"network\" that joins them, and \"{}\" has none; describe its NICs, "
        "or take {}",
        machines.count, root.at("name").text(),
        machines.domain > 1 ? fmt::format("{} machines, a domain", machines.domain)
                            : std::string("one machine")));
  }
  const auto repeats = as_size(machines.count);
  if (repeats * machine.devices.size() > most_devices) {
    root.refuse(fmt::format("{} machines of {} device{} are {}, and a cluster has at most {}",
                            machines.count, machine.devices.size(),
                            machine.devices.size() == 1 ? "" : "s",
                            repeats * machine.devices.size(), most_devices));
  }
  if (repeats * machine.links.size() > most_links) {
    root.refuse(fmt::format("{} machines of {} links are {}, and a cluster has at most {}",
                            machines.count, machine.links.size(), repeats * machine.links.size(),
                            most_links));
  }
  return machines;
}

// Names are unique in a machine, and its own are not those of what joins it.
void check_names(const JsonNode& root, const Cluster& cluster) {
  std::unordered_set<std::string_view> seen;
  const auto check = [&](const std::string& name) {
    if (!seen.insert(name).second) {
      root.refuse(
          fmt::format("the name {} appears twice among the machines, their NICs and the "
                      "switches that join them",
                      in_quotes(name)));
    }
  };
  for (const Device& device : cluster.devices) check(device.name);
  for (const Host& host : cluster.hosts) check(host.name);
  for (const std::string& name : cluster.switches) check(name);
}

// Racks of a file that has all machines as they are: a "domain" says it of repeated ones.
void check_few_racks(const JsonNode& root, const Cluster& cluster, int machines) {
  if (root.find("domain") || machines > 1) {
    root.at("racks").refuse("machines that are repeated have racks by their \"domain\"");
  }
  if (std::int64_t{cluster.racks.devices} * cluster.racks.machines > most_devices) {
    root.at("racks").refuse(fmt::format("a rack has at most {} devices", most_devices));
  }
}

void read_interference(const JsonNode& root, Cluster& cluster) {
  if (const auto found = root.find("pair_overlap")) {
    cluster.pair_overlap = found->number();
    if (!(*cluster.pair_overlap >= 0 && *cluster.pair_overlap <= 1)) {
      found->refuse(fmt::format("a share is from 0 to 1 (it is {})", *cluster.pair_overlap));
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
}

Handover read_handover(const JsonNode& node) {
  node.check_keys({}, {"write", "read"});
  Handover handover;
  if (const auto found = node.find("write")) handover.write = read_bandwidth(*found);
  if (const auto found = node.find("read")) handover.read = read_bandwidth(*found);
  return handover;
}

}  // namespace

Cluster read_cluster(const std::string& json_text, const std::string& file, const ClusterUse& use) {
  const JsonValue tree = parse_json(json_text, file);
  return read_cluster(JsonNode(tree, "", file), use);
}

Cluster read_cluster(const JsonNode& root, const ClusterUse& use) {
  if (root.kind() != JsonKind::object) root.refuse("a cluster is one JSON object");
  if (const std::string format = root.at("format").text(); format != format_name) {
    root.at("format").refuse(
        fmt::format("a cluster has \"{}\" here, not {}", format_name, in_quotes(format)));
  }
  root.check_keys({"format", "name", "devices"},
                  {"source", "kinds", "machines", "hosts", "switches", "links", "domain", "racks",
                   "network", "overlap", "overlap_messages", "overlap_transfers", "pair_overlap",
                   "interference", "handover", "collectives"});
  Cluster cluster;
  cluster.name = root.at("name").text();
  cluster.source = root.text_or_empty("source");
  const auto in_file =
      root.find("machines") ? static_cast<int>(root.at("machines").whole(1, most_devices)) : 1;
  const bool several = in_file * use.times > 1 || use.groups;
  const bool driver = several || use.driver;

  NameTable kinds;
  for (const JsonNode& node : list_or_nothing(root, "kinds")) {
    cluster.kinds.push_back(read_kind(node, driver));
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
  for (const JsonNode& node : devices) read_devices(node, driver, kinds, hosts, nodes, cluster);
  for (const JsonNode& node : host_nodes) nodes.add(node.at("name"), node.at("name").text());
  for (const JsonNode& node : list_or_nothing(root, "switches")) {
    cluster.switches.push_back(read_name(node));
    nodes.add(node, cluster.switches.back());
  }
  for (const JsonNode& node : list_or_nothing(root, "links")) read_links(node, nodes, cluster);
  if (const auto found = root.find("overlap")) {
    cluster.overlap_slowdown = read_overlap(*found, "compute beside communication");
  }
  if (const auto found = root.find("overlap_messages")) {
    cluster.message_slowdown = read_overlap(*found, "compute beside messages");
  }
  if (const auto found = root.find("overlap_transfers")) {
    cluster.transfer_slowdown = read_overlap(*found, "communication beside compute");
  }
  read_interference(root, cluster);
  if (const auto found = root.find("handover")) cluster.handover = read_handover(*found);
  for (const JsonNode& node : list_or_nothing(root, "collectives")) {
    read_measured_collective(node, cluster.collectives);
  }

  if (const auto found = root.find("racks")) {
    found->check_keys({"devices", "machines"}, {});
    cluster.racks = {static_cast<int>(found->at("devices").whole(1, most_devices)),
                     static_cast<int>(found->at("machines").whole(2, most_devices))};
    check_few_racks(root, cluster, in_file * use.times);
  }
  const Machines machines = read_machines(root, cluster, nodes, in_file, use.times);
  if ((several || use.overlap) && machines.fabric && !root.find("overlap")) {
    cluster.overlap_slowdown = machines.fabric->overlap;
  }
  if (use.times > 1) cluster.name += fmt::format("*{}", use.times);
  if (machines.count == 1) return cluster;
  const Racks racks{static_cast<int>(cluster.devices.size()), machines.domain};
  cluster = repeated(cluster, machines);
  if (machines.domain > 1) cluster.racks = racks;
  check_names(root, cluster);
  return cluster;
}

}  // namespace stageline
