// Clusters for the tests of collectives: machines of GPUs with NVLink and one NIC each.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "cost_models/network/collectives.hpp"
#include "sim/base/index.hpp"
#include "sim/cluster.hpp"
#include "sim/costs.hpp"
#include "sim/routes.hpp"

namespace stageline::test {

inline constexpr std::int64_t giga = 1'000'000'000;
inline constexpr std::int64_t mebi = 1 << 20;

struct Machines {
  int machines = 1;
  int gpus = 8;
  std::string kind = "";  // empty: devices of no kind
  std::int64_t nvlink = 450 * giga;
  std::int64_t nic = 50 * giga;
  bool shared_nic = false;  // one NIC a machine behind its switch, or one a GPU
  Time network_latency{};   // of the route between two machines
};

inline Cluster cluster_of(const Machines& spec) {
  Cluster cluster;
  cluster.name = "machines";
  if (!spec.kind.empty()) {
    cluster.kinds.emplace_back();
    cluster.kinds.back().name = spec.kind;
  }
  for (int m = 0; m < spec.machines; ++m) {
    cluster.hosts.push_back({fmt::format("host{}", m), {}});
    cluster.switches.push_back(fmt::format("nvswitch{}", m));
    for (int g = 0; g < spec.gpus; ++g) {
      Device device;
      device.name = fmt::format("gpu{}", m * spec.gpus + g);
      device.kind = spec.kind.empty() ? -1 : 0;
      device.host = m;
      cluster.devices.push_back(device);
    }
  }
  cluster.switches.emplace_back("fabric");
  const int first_switch = static_cast<int>(cluster.devices.size() + cluster.hosts.size());
  const auto join = [&](int from, int to, std::int64_t bandwidth, Time latency, Tier tier) {
    Link link;
    link.name = fmt::format("{}-{}", from, to);
    link.from = from;
    link.to = to;
    link.bandwidth = Bandwidth{bandwidth};
    link.latency = latency;
    link.tier = tier;
    cluster.links.push_back(link);
  };
  const int fabric = first_switch + spec.machines;
  const Time half = spec.network_latency / 2;
  for (int m = 0; m < spec.machines; ++m) {
    for (int g = 0; g < spec.gpus; ++g) {
      const int device = m * spec.gpus + g;
      join(device, first_switch + m, spec.nvlink, Time{}, Tier::nvlink);
      if (!spec.shared_nic) join(device, fabric, spec.nic, half, Tier::network);
    }
    if (spec.shared_nic) join(first_switch + m, fabric, spec.nic, half, Tier::network);
  }
  return cluster;
}

inline std::vector<int> ranks_to(int count) {
  std::vector<int> ranks(as_size(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

inline CollectivePlan planned(const Cluster& cluster, const Collective& collective,
                              const std::string& algorithm = "best") {
  Routes routes(cluster);
  return Collectives(cluster, routes, algorithm).plan(collective);
}

/// Of all devices of the cluster, as one group.
inline Collective of_all(const Cluster& cluster, CollectiveKind kind, std::int64_t bytes) {
  return {kind, Bytes{bytes}, {ranks_to(static_cast<int>(cluster.devices.size()))}};
}

/// The load of the resource of that name ("gpu3>fabric"); 0: none.
inline double load_on(const Cluster& cluster, const Route& route, const std::string& resource) {
  const Routes routes(cluster);
  const auto& names = routes.names();
  const auto found = std::find(names.begin(), names.end(), resource);
  REQUIRE_MESSAGE(found != names.end(), "no resource ", resource);
  const auto used = std::find(route.resources.begin(), route.resources.end(),
                              static_cast<int>(found - names.begin()));
  return used == route.resources.end() ? 0 : nth(route.load, used - route.resources.begin());
}

inline double milliseconds(const CollectivePlan& plan) {
  return to_seconds(alone(plan.costs)) * 1e3;
}

}  // namespace stageline::test
