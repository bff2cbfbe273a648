// Which way do bytes go, how fast, and what do they share?
#include "sim/cluster.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <random>

#include "sim/base/errors.hpp"
#include "tests/text.hpp"

namespace stageline::cluster_tests {
namespace {

// Devices, hosts and switches are nodes 0.. in this order.
struct Nodes {
  int devices = 0;
  int hosts = 0;
  int switches = 0;
};

Cluster cluster(Nodes nodes, std::vector<Link> links) {
  Cluster made;
  made.name = "lab";
  for (int i = 0; i < nodes.devices; ++i) {
    Device device;
    device.name = "d" + std::to_string(i);
    device.host = nodes.hosts > 0 ? i % nodes.hosts : -1;
    made.devices.push_back(device);
  }
  for (int i = 0; i < nodes.hosts; ++i) made.hosts.push_back({"h" + std::to_string(i), {}});
  for (int i = 0; i < nodes.switches; ++i) made.switches.push_back("s" + std::to_string(i));
  made.links = std::move(links);
  return made;
}

Link link(int from, int to, std::int64_t bandwidth, int latency, Duplex duplex = Duplex::full) {
  return {"", from, to, Bandwidth{bandwidth}, Time{latency}, duplex};
}

// "100 B/s after 3 ps over d0>s0 s0>d1"
std::string told(const Network& network, const Route& route) {
  std::string text = std::to_string(route.bandwidth.bytes_per_second) + " B/s after " +
                     std::to_string(route.latency.count()) + " ps over";
  for (const int resource : route.resources) {
    text += " " + nth(network.resources, resource);
  }
  return text;
}

TEST_CASE("without links every route is free") {
  const Network network = network_of(cluster({3, 1, 0}, {}));
  CHECK(network.devices == 3);
  for (int to = 0; to < 3; ++to) CHECK(network.between(1, to).is_free());
  for (const Route& route : network.to_host) CHECK(route.is_free());
  CHECK(network.resources.empty());
}

TEST_CASE("a route is as wide as its narrowest link, and its latencies add up") {
  const Network network =
      network_of(cluster({2, 0, 2}, {link(0, 2, 100, 1), link(2, 3, 50, 2), link(3, 1, 70, 4)}));
  CHECK(told(network, network.between(0, 1)) == "50 B/s after 7 ps over d0>s0 s0>s1 s1>d1");
  CHECK(told(network, network.between(1, 0)) == "50 B/s after 7 ps over d1>s1 s1>s0 s0>d0");
  CHECK(network.between(0, 0).is_free());
}

TEST_CASE("the route with the least latency is taken, then the widest") {
  const Network swift =
      network_of(cluster({2, 0, 1}, {link(0, 1, 99, 5), link(0, 2, 10, 2), link(2, 1, 10, 2)}));
  CHECK(told(swift, swift.between(0, 1)) == "10 B/s after 4 ps over d0>s0 s0>d1");
  const Network wide =
      network_of(cluster({2, 0, 1}, {link(0, 1, 10, 4), link(0, 2, 99, 2), link(2, 1, 99, 2)}));
  CHECK(told(wide, wide.between(0, 1)) == "99 B/s after 4 ps over d0>s0 s0>d1");
  const Network fewer =
      network_of(cluster({2, 0, 1}, {link(0, 1, 99, 4), link(0, 2, 99, 2), link(2, 1, 99, 2)}));
  CHECK(told(fewer, fewer.between(0, 1)) == "99 B/s after 4 ps over d0>d1");
}

TEST_CASE("a half-duplex link is one resource for both ways") {
  const Network network = network_of(cluster({2, 0, 0}, {link(0, 1, 10, 0, Duplex::half)}));
  CHECK(told(network, network.between(0, 1)) == "10 B/s after 0 ps over d0-d1");
  CHECK(told(network, network.between(1, 0)) == "10 B/s after 0 ps over d0-d1");
  CHECK(network.resources.size() == 1);
}

TEST_CASE("bytes do not travel through a third device, but through hosts and switches") {
  const Cluster ring = cluster({3, 0, 0}, {link(0, 1, 10, 1), link(1, 2, 10, 1)});
  CHECK(test::complaint<UsageError>([&] { network_of(ring); }) ==
        "cluster \"lab\": no link leads from d0 to d2; every pair of devices must be joined, "
        "directly or through hosts and switches");
  const Network through_host =
      network_of(cluster({2, 1, 0}, {link(0, 2, 10, 1), link(1, 2, 20, 1)}));
  CHECK(told(through_host, through_host.between(0, 1)) == "10 B/s after 2 ps over d0>h0 h0>d1");
}

TEST_CASE("each device knows the way to its host and back") {
  const Network network =
      network_of(cluster({2, 1, 0}, {link(0, 2, 10, 1, Duplex::half), link(2, 1, 20, 3)}));
  CHECK(told(network, network.to_host[0]) == "10 B/s after 1 ps over d0-h0");
  CHECK(told(network, network.from_host[0]) == "10 B/s after 1 ps over d0-h0");
  CHECK(told(network, network.to_host[1]) == "20 B/s after 3 ps over d1>h0");
  CHECK(told(network, network.from_host[1]) == "20 B/s after 3 ps over h0>d1");
}

TEST_CASE("a host that no link reaches is free") {
  const Network network = network_of(cluster({2, 1, 0}, {link(0, 1, 10, 1)}));
  CHECK(network.to_host[0].is_free());
}

// All simple ways by depth-first search; what a route must be best in.
TEST_CASE("random clusters: no way has less latency, nor is wider at the same") {
  std::mt19937 random(91);
  const auto below = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  int routes = 0;
  for (int i = 0; i < 300; ++i) {
    const Nodes nodes{2 + below(3), below(2), 1 + below(3)};
    const int count = nodes.devices + nodes.hosts + nodes.switches;
    std::vector<Link> links;
    for (int n = below(4) + count; n > 0; --n) {
      const int from = below(count);
      const int to = below(count);
      if (from == to) continue;
      links.push_back(link(from, to, 10 * (1 + below(3)), below(3),
                           below(4) == 0 ? Duplex::half : Duplex::full));
    }
    if (links.empty()) continue;
    const Cluster made = cluster(nodes, links);
    // Best (latency, -bandwidth) from `from` to `to`.
    const auto best = [&](int from, int to) {
      std::pair<std::int64_t, std::int64_t> found{-1, 0};
      std::vector<bool> seen(as_size(count));
      const std::function<void(int, std::int64_t, std::int64_t)> go = [&](int node,
                                                                          std::int64_t latency,
                                                                          std::int64_t width) {
        if (node == to) {
          const std::pair<std::int64_t, std::int64_t> here{latency, -width};
          if (found.first < 0 || here < found) found = here;
          return;
        }
        if (node != from && node < nodes.devices) return;
        nth(seen, node) = true;
        for (const Link& one : links) {
          for (const auto& [a, b] : {std::pair(one.from, one.to), std::pair(one.to, one.from)}) {
            if (a != node || nth(seen, b)) continue;
            go(b, latency + one.latency.count(), std::min(width, one.bandwidth.bytes_per_second));
          }
        }
        nth(seen, node) = false;
      };
      go(from, 0, std::numeric_limits<std::int64_t>::max());
      return found;
    };
    bool joined = true;
    for (int from = 0; from < nodes.devices; ++from) {
      for (int to = 0; to < nodes.devices; ++to) {
        joined = joined && (from == to || best(from, to).first >= 0);
      }
    }
    if (!joined) {
      CHECK_THROWS_AS(network_of(made), UsageError);
      continue;
    }
    const Network network = network_of(made);
    for (int from = 0; from < nodes.devices; ++from) {
      for (int to = 0; to < nodes.devices; ++to) {
        if (from == to) continue;
        const Route& route = network.between(from, to);
        const auto wanted = best(from, to);
        CHECK(route.latency.count() == wanted.first);
        CHECK(route.bandwidth.bytes_per_second == -wanted.second);
        ++routes;
      }
    }
  }
  CHECK(routes > 500);
}

TEST_CASE("the first devices keep what is not a device") {
  const Cluster whole = cluster({3, 1, 1}, {link(0, 4, 10, 0), link(1, 4, 20, 0), link(2, 4, 30, 0),
                                            link(1, 3, 40, 0), link(2, 3, 50, 0)});
  const Cluster two = first_devices(whole, 2);
  CHECK(two.devices.size() == 2);
  CHECK(two.hosts == whole.hosts);
  CHECK(two.switches == whole.switches);
  CHECK(two.links == std::vector<Link>{link(0, 3, 10, 0), link(1, 3, 20, 0), link(1, 2, 40, 0)});
  const Network network = network_of(two);
  CHECK(told(network, network.between(0, 1)) == "10 B/s after 0 ps over d0>s0 s0>d1");
  CHECK(told(network, network.to_host[1]) == "40 B/s after 0 ps over d1>h0");
  CHECK(first_devices(whole, 3) == whole);
}

TEST_CASE("devices in another order keep their own links") {
  const Cluster whole = cluster({3, 1, 1}, {link(0, 4, 10, 0), link(1, 4, 20, 0), link(2, 4, 30, 0),
                                            link(1, 3, 40, 0), link(2, 3, 50, 0)});
  const Cluster two = with_devices(whole, {2, 1});
  CHECK(two.devices[0].name == whole.devices[2].name);
  CHECK(two.links == std::vector<Link>{link(1, 3, 20, 0), link(0, 3, 30, 0), link(1, 2, 40, 0),
                                       link(0, 2, 50, 0)});
  CHECK(with_devices(whole, {0, 1, 2}) == whole);
}

TEST_CASE("more devices than there are, or none, are refused") {
  CHECK(test::contains(
      test::complaint<UsageError>([] {
        first_devices(cluster({1, 0, 0}, {}), 2);
      }),
      "cluster \"lab\" has 1 device, and 2 were asked for; give --devices 1 or fewer"));
  CHECK(test::complaint<UsageError>([] {
          first_devices(cluster({1, 0, 0}, {}), 0);
        }) == "--devices must be at least 1 (it is 0)");
  CHECK(test::complaint<UsageError>([] { uniform_cluster(0, {}, {}); }) ==
        "--devices must be at least 1 (it is 0)");
}

TEST_CASE("equal devices share a switch by a port each") {
  const Network network =
      network_of(uniform_cluster(3, LinkSpec{Bandwidth{100}, Time{8}}, Bytes{5}));
  CHECK(told(network, network.between(0, 2)) == "100 B/s after 8 ps over gpu0>switch switch>gpu2");
  CHECK(told(network, network.between(2, 1)) == "100 B/s after 8 ps over gpu2>switch switch>gpu1");
  const Cluster made = uniform_cluster(2, {}, Bytes{5});
  CHECK(made.devices[1].name == "gpu1");
  CHECK(made.devices[1].memory == Bytes{5});
  CHECK(network_of(made).between(0, 1).is_free());
}

TEST_CASE("the latency of a given link is that of the way, to the picosecond") {
  for (const int latency : {0, 1, 4, 5, 1'000'001}) {
    for (const bool hosts : {false, true}) {
      const auto host = hosts ? std::optional(LinkSpec{Bandwidth::unlimited(), Time{7}})
                              : std::optional<LinkSpec>();
      const Network network = network_of(
          uniform_cluster(3, LinkSpec{Bandwidth::unlimited(), Time{latency}}, std::nullopt, host));
      for (int from = 0; from < 3; ++from) {
        for (int to = 0; to < 3; ++to) {
          CHECK(network.between(from, to).latency == Time{from == to ? 0 : latency});
        }
      }
      CHECK(network.to_host[0].latency == Time{hosts ? 7 : 0});
      CHECK(network.from_host[0].latency == Time{hosts ? 7 : 0});
    }
  }
}

TEST_CASE("a link may take longer one way than the other") {
  Cluster cluster = uniform_cluster(2, std::nullopt, std::nullopt);
  cluster.hosts.push_back({"host", std::nullopt});
  for (Device& device : cluster.devices) device.host = 0;
  for (int device = 0; device < 2; ++device) {
    cluster.links.push_back({"", device, 2, {}, Time{3 + device}, Duplex::full, Time{10 + device}});
  }
  const Network network = network_of(cluster);
  CHECK(network.between(0, 1).latency == Time{3 + 11});
  CHECK(network.between(1, 0).latency == Time{4 + 10});
  CHECK(network.to_host[1].latency == Time{4});
  CHECK(network.from_host[1].latency == Time{11});
}

}  // namespace
}  // namespace stageline::cluster_tests
