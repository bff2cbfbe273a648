// Reads "network" of cluster files: the NICs of a machine, and the switches that join machines.
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "sim/base/index.hpp"
#include "traces/native/cluster_parts.hpp"

namespace stageline {
namespace {

constexpr int most_switches = 4096;

// "rails": how many, or their names. One switch that is no rail where it is left out.
std::vector<std::string> read_rails(const JsonNode& network) {
  const auto found = network.find("rails");
  if (!found) return {"fabric"};
  std::vector<std::string> rails;
  if (!found->is_list()) {
    const auto count = static_cast<int>(found->whole(1, most_switches));
    for (int rail = 0; rail < count; ++rail) rails.push_back(fmt::format("rail{}", rail));
    return rails;
  }
  NameTable names;
  for (const JsonNode& node : found->items()) {
    names.add(node, read_name(node));
    rails.push_back(node.text());
  }
  if (rails.empty()) found->refuse("a network has at least one rail");
  return rails;
}

// "devices": "gpu*", a list of names, or all.
std::vector<int> read_devices_of(const JsonNode& nics, const NameTable& nodes, int devices) {
  std::vector<int> all;
  const auto found = nics.find("devices");
  if (!found) {
    all.resize(as_size(devices));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const auto add = [&](const JsonNode& node) {
    for (const int end : read_ends(node, nodes)) {
      if (end >= devices) {
        node.refuse(fmt::format("a NIC belongs to devices, and {} is none",
                                in_quotes(nth(nodes.names(), end))));
      }
      if (std::find(all.begin(), all.end(), end) != all.end()) {
        node.refuse(fmt::format("{} appears twice", in_quotes(nth(nodes.names(), end))));
      }
      all.push_back(end);
    }
  };
  if (found->is_list()) {
    for (const JsonNode& node : found->items()) add(node);
  } else {
    add(*found);
  }
  if (all.empty()) found->refuse("a NIC belongs to at least one device");
  return all;
}

Nics read_nics(const JsonNode& node, const std::vector<std::string>& rails, const NameTable& nodes,
               int devices) {
  node.check_keys({"name", "bandwidth"},
                  {"count", "devices", "latency", "pcie", "rail", "transport"});
  Nics nics;
  nics.name = read_name(node.at("name"));
  nics.bandwidth = read_bandwidth(node.at("bandwidth"));
  nics.transport = read_transport(node, Tier::network, nics.bandwidth);
  if (const auto found = node.find("latency")) nics.latency = read_latency(*found);
  if (const auto found = node.find("pcie")) nics.pcie = read_bandwidth(*found);
  nics.devices = read_devices_of(node, nodes, devices);
  if (const auto found = node.find("count")) {
    nics.count = static_cast<int>(found->whole(1, most_switches));
    const auto served = static_cast<int>(nics.devices.size());
    if (nics.count > served && nics.count % served != 0) {
      found->refuse(
          fmt::format("{} NICs cannot be divided evenly among {} devices; make the number a "
                      "multiple of theirs, or two entries",
                      nics.count, served));
    }
    if (nics.count > served && nics.transport == Transport::tcp) {
      found->refuse(fmt::format(
          "{} NICs of {} device{} are one link each, and what several carry over tcp was never "
          "measured; give as many as devices or fewer, or leave \"transport\" out",
          nics.count, served, served == 1 ? "" : "s"));
    }
  }
  if (const auto found = node.find("rail")) {
    const auto rail = std::find(rails.begin(), rails.end(), found->text());
    if (rail == rails.end()) {
      found->refuse(fmt::format("there is no rail {}{}; this network has {}",
                                in_quotes(found->text()), suggestion(found->text(), rails),
                                fmt::join(rails, ", ")));
    }
    nics.rail = static_cast<int>(rail - rails.begin());
  }
  return nics;
}

void read_spine(const JsonNode& node, Fabric& fabric) {
  node.check_keys({}, {"oversubscription", "latency"});
  if (fabric.rails.size() == 1 && fabric.leaf_machines == 0) {
    node.refuse(
        "a spine joins several switches, and this network has one for all machines; give "
        "\"rails\" or \"leaf_machines\"");
  }
  fabric.spine = true;
  if (const auto found = node.find("latency")) fabric.spine_latency = read_latency(*found);
  if (const auto found = node.find("oversubscription")) {
    fabric.oversubscription = found->number();
    if (!(fabric.oversubscription >= 1)) {
      found->refuse(
          fmt::format("oversubscription is the bandwidth from the machines into a switch over that "
                      "to the spine, at least 1 (it is {})",
                      fabric.oversubscription));
    }
  }
}

}  // namespace

Fabric read_fabric(const JsonNode& node, const Cluster& machine, const NameTable& nodes) {
  node.check_keys({"nics"}, {"rails", "leaf_machines", "spine", "overlap", "source"});
  static_cast<void>(node.text_or_empty("source"));  // for people
  Fabric fabric;
  fabric.rails = read_rails(node);
  if (const auto found = node.find("leaf_machines")) {
    fabric.leaf_machines = static_cast<int>(found->whole(1, most_switches));
  }
  if (const auto found = node.find("spine")) read_spine(*found, fabric);
  if (const auto found = node.find("overlap")) {
    fabric.overlap = read_overlap(*found, "compute beside communication");
  }
  const auto devices = static_cast<int>(machine.devices.size());
  for (const JsonNode& nics : node.at("nics").items()) {
    fabric.nics.push_back(read_nics(nics, fabric.rails, nodes, devices));
  }
  if (fabric.nics.empty()) node.at("nics").refuse("a network has at least one NIC");
  return fabric;
}

}  // namespace stageline
