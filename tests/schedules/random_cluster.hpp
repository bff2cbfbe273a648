// Random links between devices, hosts and switches.
#pragma once

#include <random>
#include <string>

#include "sim/cluster.hpp"

namespace stageline::test {

// Few latencies and bandwidths, so that many routes are equally good.
inline Cluster random_cluster(std::mt19937& random, int devices) {
  const auto below = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  Cluster cluster;
  const int hosts = below(3);
  const int switches = 1 + below(8);
  for (int d = 0; d < devices; ++d) {
    Device device;
    device.name = "d" + std::to_string(d);
    device.host = hosts > 0 ? below(hosts) : -1;
    cluster.devices.push_back(device);
  }
  for (int h = 0; h < hosts; ++h) {
    cluster.hosts.push_back({"h" + std::to_string(h), {}, below(4) > 0});
  }
  for (int s = 0; s < switches; ++s) cluster.switches.push_back("s" + std::to_string(s));
  const int nodes = devices + hosts + switches;
  for (int l = below(4 * nodes) + nodes; l > 0; --l) {
    Link link;
    link.from = below(nodes);
    link.to = below(nodes);
    if (link.from == link.to) continue;
    link.bandwidth = Bandwidth{10 * (1 + below(2))};
    link.latency = Time{below(2)};
    if (below(4) == 0) link.duplex = Duplex::half;
    if (below(8) == 0) link.latency_back = Time{below(3)};
    cluster.links.push_back(link);
  }
  return cluster;
}

}  // namespace stageline::test
