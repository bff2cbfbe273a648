// Networks and uniform clusters.
#include "sim/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/routes.hpp"
#include "sim/transport.hpp"

namespace stageline {

std::string_view name(Tier tier) {
  switch (tier) {
    case Tier::other:
      return "other";
    case Tier::nvlink:
      return "nvlink";
    case Tier::pcie:
      return "pcie";
    case Tier::network:
      return "network";
  }
  return "";
}

std::string_view name(Transport transport) {
  switch (transport) {
    case Transport::stated:
      return "";
    case Transport::tcp:
      return "tcp";
    case Transport::host:
      return "host";
  }
  return "";
}

std::string_view name(Sharing sharing) {
  switch (sharing) {
    case Sharing::fifo:
      return "fifo";
    case Sharing::fair:
      return "fair";
  }
  return "";
}

const Route& Network::found_between(int from, int to) const {
  static const Route free;
  return found ? found->between(from, to) : free;
}

Network free_network(int devices) {
  Network network;
  network.devices = devices;
  network.to_host.resize(as_size(devices));
  network.from_host.resize(as_size(devices));
  network.host.resize(as_size(devices));
  network.hosts.emplace_back("host");
  return network;
}

namespace {

struct HeldRoutes {
  explicit HeldRoutes(const Cluster& of) : cluster(of), routes(cluster) {}
  Cluster cluster;
  Routes routes;
};

}  // namespace

Network network_of(const Cluster& cluster) {
  const int devices = static_cast<int>(cluster.devices.size());
  Network network = free_network(devices);
  for (int d = 0; d < devices; ++d) {
    nth(network.host, d) = std::max(nth(cluster.devices, d).host, 0);
  }
  if (!cluster.hosts.empty()) network.hosts.clear();
  for (const Host& host : cluster.hosts) network.hosts.push_back(host.name);
  if (cluster.links.empty()) return network;
  const auto held = std::make_shared<HeldRoutes>(cluster);
  Routes& routes = held->routes;
  routes.check_joined();
  network.found = std::make_shared<FoundRoutes>(
      [held](int from, int to) { return held->routes.between(from, to); });
  network.resources = routes.names();
  network.capacity = routes.capacity();
  for (int d = 0; d < devices; ++d) {
    Routes::ToHost host = routes.host_routes(d);
    nth(network.to_host, d) = std::move(host.there);
    nth(network.from_host, d) = std::move(host.back);
  }
  return network;
}

Cluster first_devices(Cluster cluster, int count) {
  const int have = static_cast<int>(cluster.devices.size());
  if (count < 1) throw UsageError(fmt::format("--devices must be at least 1 (it is {})", count));
  if (count > have) {
    throw UsageError(fmt::format(
        "cluster \"{}\" has {} device{}, and {} were asked for; give --devices {} or fewer, "
        "another --cluster, or equal devices by --link",
        cluster.name, have, have == 1 ? "" : "s", count, have));
  }
  if (count == have) return cluster;
  std::vector<int> first(as_size(count));
  std::iota(first.begin(), first.end(), 0);
  return with_devices(std::move(cluster), first);
}

Cluster with_devices(Cluster cluster, const std::vector<int>& devices) {
  const auto have = cluster.devices.size();
  const int dropped = static_cast<int>(have - devices.size());
  std::vector<int> now(have, -1);  // by device
  std::vector<Device> kept;
  kept.reserve(devices.size());
  for (const int device : devices) {
    nth(now, device) = static_cast<int>(kept.size());
    kept.push_back(std::move(nth(cluster.devices, device)));
  }
  cluster.devices = std::move(kept);
  const auto renumbered = [&](int node) {
    return as_size(node) < have ? now[as_size(node)] : node - dropped;
  };
  std::erase_if(cluster.links, [&](Link& link) {
    link.from = renumbered(link.from);
    link.to = renumbered(link.to);
    return link.from < 0 || link.to < 0;
  });
  return cluster;
}

Cluster uniform_cluster(int count, std::optional<LinkSpec> link, std::optional<Bytes> memory,
                        std::optional<LinkSpec> host, std::optional<Bytes> host_memory) {
  if (count < 1) throw UsageError(fmt::format("--devices must be at least 1 (it is {})", count));
  Cluster cluster;
  cluster.name = fmt::format("{} equal device{}", count, count == 1 ? "" : "s");
  const bool with_host = host || host_memory;
  for (int i = 0; i < count; ++i) {
    Device device;
    device.name = fmt::format("gpu{}", i);
    device.memory = memory;
    device.host = with_host ? 0 : -1;
    cluster.devices.push_back(device);
  }
  if (with_host) cluster.hosts.push_back({"host", host_memory, false});
  if (!link && !host) return cluster;
  // A link to the host alone: then devices reach each other at once, as without any link.
  const LinkSpec port = link.value_or(LinkSpec{Bandwidth::unlimited(), Time{}});
  cluster.switches.emplace_back("switch");
  const int common = count + static_cast<int>(cluster.hosts.size());
  for (int i = 0; i < count; ++i) {
    // Every route leaves by one port and arrives by another: its latency is that of the first.
    Link out{fmt::format("port{}", i), i, common, port.bandwidth, port.latency, Duplex::full};
    if (port.latency != Time{}) out.latency_back = Time{};
    cluster.links.push_back(std::move(out));
  }
  for (int i = 0; host && i < count; ++i) {
    cluster.links.push_back(
        {fmt::format("host{}", i), i, count, host->bandwidth, host->latency, Duplex::full});
  }
  return cluster;
}

}  // namespace stageline
