// Are the routes those that Boost.Graph finds, link by link?
#include "sim/routes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <functional>
#include <random>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/cluster.hpp"
#include "tests/schedules/random_cluster.hpp"
#include "tests/text.hpp"

namespace stageline::routes_tests {
namespace {

struct Way {
  std::int64_t latency = 0;
  double slowness = 0;
  int links = 0;
  friend auto operator<=>(const Way&, const Way&) = default;
  friend Way operator+(const Way& a, const Way& b) {
    return {a.latency + b.latency, std::max(a.slowness, b.slowness), a.links + b.links};
  }
};
struct Cable {
  Way way;
  int resource = 0;
};
using Map =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Cable>;

struct Passable {
  const Map* map = nullptr;
  const Cluster* cluster = nullptr;
  std::size_t source = 0;
  bool operator()(const Map::edge_descriptor& edge) const {
    const std::size_t from = boost::source(edge, *map);
    const std::size_t devices = cluster->devices.size();
    if (from == source || from >= devices + cluster->hosts.size()) return true;
    return from >= devices && cluster->hosts[from - devices].relays;
  }
};

// The resources on the way from a device to every node; empty where there is none.
std::vector<std::vector<int>> ways_by_boost(const Cluster& cluster, int source) {
  const std::size_t nodes = cluster.devices.size() + cluster.hosts.size() + cluster.switches.size();
  Map map(nodes);
  int resources = 0;
  for (const Link& link : cluster.links) {
    const double slowness = 1.0 / static_cast<double>(link.bandwidth.bytes_per_second);
    const bool half = link.duplex == Duplex::half;
    const int back = half ? resources : resources + 1;
    boost::add_edge(as_size(link.from), as_size(link.to),
                    Cable{{link.latency.count(), slowness, 1}, resources}, map);
    boost::add_edge(as_size(link.to), as_size(link.from),
                    Cable{{link.back().count(), slowness, 1}, back}, map);
    resources = back + 1;
  }
  const boost::filtered_graph<Map, Passable> open(map, {&map, &cluster, as_size(source)});
  const Way far{std::int64_t{1} << 60U, 0, 0};
  std::vector<Way> length(nodes, far);
  std::vector<Map::edge_descriptor> last(nodes);
  const auto index = get(boost::vertex_index, open);
  boost::dijkstra_shortest_paths(
      open, as_size(source),
      boost::weight_map(boost::make_function_property_map<Map::edge_descriptor>(
                            [&](const Map::edge_descriptor& edge) { return map[edge].way; }))
          .distance_map(boost::make_iterator_property_map(length.begin(), index))
          .distance_zero(Way{})
          .distance_inf(far)
          .distance_compare(std::less<Way>())
          .distance_combine(std::plus<Way>())
          .visitor(boost::make_dijkstra_visitor(boost::record_edge_predecessors(
              boost::make_iterator_property_map(last.begin(), index), boost::on_edge_relaxed()))));
  std::vector<std::vector<int>> ways(nodes);
  for (std::size_t node = 0; node < nodes; ++node) {
    if (length[node] == far) continue;
    for (std::size_t at = node; at != as_size(source); at = boost::source(last[at], map)) {
      ways[node].insert(ways[node].begin(), map[last[at]].resource);
    }
  }
  return ways;
}

TEST_CASE("of equally good routes the one that Boost.Graph takes is taken") {
  std::mt19937 random(18);
  int compared = 0;
  int missing = 0;
  for (int round = 0; round < 400; ++round) {
    const Cluster cluster = test::random_cluster(random, 2 + static_cast<int>(random() % 12));
    if (cluster.links.empty()) continue;
    const int devices = static_cast<int>(cluster.devices.size());
    Routes routes(cluster);
    for (int from = 0; from < devices; ++from) {
      const std::vector<std::vector<int>> wanted = ways_by_boost(cluster, from);
      for (int to = 0; to < devices; ++to) {
        if (to == from) continue;
        if (nth(wanted, to).empty()) {
          ++missing;
          CHECK_THROWS_AS(routes.between(from, to), UsageError);
          continue;
        }
        ++compared;
        CHECK(routes.between(from, to).resources == nth(wanted, to));
      }
      const int host = nth(cluster.devices, from).host;
      if (host >= 0) {
        CHECK(routes.host_routes(from).there.resources == nth(wanted, devices + host));
      }
    }
  }
  CHECK(compared > 10'000);
  CHECK(missing > 100);
}

TEST_CASE("routes between the switches of many devices are as long as those that are searched") {
  std::mt19937 random(48);
  int compared = 0;
  for (int round = 0; round < 400; ++round) {
    const Cluster cluster = test::random_cluster(random, 2 + static_cast<int>(random() % 12));
    if (cluster.links.empty()) continue;
    const int devices = static_cast<int>(cluster.devices.size());
    Routes searched(cluster);
    Routes relayed(cluster, 0);
    // A search from a device may keep one of more links among equally fast ones.
    const auto same = [&](const Route& one, const Route& other) {
      return one.latency == other.latency && one.bandwidth == other.bandwidth;
    };
    for (int from = 0; from < devices; ++from) {
      for (int to = 0; to < devices; ++to) {
        const std::string refused =
            test::complaint<UsageError>([&] { searched.between(from, to); });
        REQUIRE(test::complaint<UsageError>([&] { relayed.between(from, to); }) == refused);
        if (!refused.empty()) continue;
        ++compared;
        REQUIRE(same(searched.between(from, to), relayed.between(from, to)));
      }
      REQUIRE(same(searched.host_routes(from).there, relayed.host_routes(from).there));
    }
  }
  CHECK(compared > 10'000);
}

// 128 machines of eight devices, a switch in each, and one that joins all.
Cluster many_machines() {
  Cluster cluster;
  cluster.name = "many";
  const int machines = 128;
  const int devices = 8 * machines;
  for (int d = 0; d < devices; ++d) {
    Device device;
    device.name = "d" + std::to_string(d);
    cluster.devices.push_back(device);
    Link inside{"", d, devices + d / 8, Bandwidth{450}, Time{1}};
    inside.tier = Tier::nvlink;
    Link outside{"", d, devices + machines, Bandwidth{50}, Time{2}};
    outside.tier = Tier::network;
    cluster.links.push_back(inside);
    cluster.links.push_back(outside);
  }
  for (int m = 0; m <= machines; ++m) cluster.switches.push_back("s" + std::to_string(m));
  return cluster;
}

TEST_CASE("a large cluster has its routes on demand, and what is found stays where it is") {
  const Cluster cluster = many_machines();
  Routes routes(cluster);
  const Route& first = routes.between(0, 7);
  const Route* const where = &first;
  for (int from = 0; from < 1024; ++from) {
    for (int k = 1; k <= 16; ++k) {
      const int to = (from + 61 * k) % 1024;
      const bool near = from / 8 == to / 8;
      const Route& route = routes.between(from, to);
      REQUIRE(route.tier == (near ? Tier::nvlink : Tier::network));
      REQUIRE(route.latency == Time{near ? 2 : 4});
      REQUIRE(route.bandwidth == Bandwidth{near ? 450 : 50});
    }
  }
  CHECK(&routes.between(0, 7) == where);
  CHECK(first.latency == Time{2});
  CHECK(routes.between(9, 9).is_free());
}

TEST_CASE("two devices that nothing joins are named") {
  Cluster cluster = many_machines();
  std::erase_if(cluster.links, [](const Link& link) { return link.from == 1000; });
  Routes routes(cluster);
  CHECK(routes.between(3, 999).tier == Tier::network);
  CHECK(test::complaint<UsageError>([&] { routes.between(3, 1000); }) ==
        "cluster \"many\": no link leads from d3 to d1000; every pair of devices must be joined, "
        "directly or through hosts and switches");
}

TEST_CASE("what training may fill of a memory is all but the reserve") {
  Device device;
  CHECK(usable_memory(device) == std::nullopt);
  device.reserve = Bytes{3};
  CHECK(usable_memory(device) == std::nullopt);
  device.memory = Bytes{10};
  CHECK(usable_memory(device) == Bytes{7});
  device.reserve = Bytes{11};
  CHECK(usable_memory(device) == Bytes{0});
}

TEST_CASE("routes of a large cluster are the same when they are found again") {
  const int devices = 200;  // 39,800 routes, more than are kept
  const Cluster cluster =
      uniform_cluster(devices, LinkSpec{{10'000'000'000}, Time{5}}, std::nullopt);
  Routes searched(cluster);
  Routes large(cluster, 0);
  int same = 0;
  for (int round = 0; round < 2; ++round) {
    for (int from = 0; from < devices; ++from) {
      for (int to = 0; to < devices; ++to) {
        if (searched.between(from, to) == large.between(from, to)) ++same;
      }
    }
  }
  CHECK(same == 2 * devices * devices);
}

TEST_CASE("what devices send through the host's memory loads their links both ways") {
  Cluster cluster = uniform_cluster(3, LinkSpec{parse_bandwidth("20GB/s"), Time{}}, {});
  for (Link& link : cluster.links) link.tier = Tier::pcie;
  const Network peers = network_of(cluster);
  CHECK(peers.between(0, 1).load.empty());
  cluster.links[0].transport = Transport::host;  // of gpu0
  const Network staged = network_of(cluster);
  const Route& there = staged.between(0, 1);
  const Route& back = staged.between(1, 0);
  CHECK(there.bandwidth == parse_bandwidth("13GB/s"));
  CHECK(back.bandwidth == there.bandwidth);
  CHECK(there.latency == peers.between(0, 1).latency);
  CHECK(there.tier == Tier::pcie);
  const auto load_on = [&](const Route& route, const std::string& name) {
    for (std::size_t i = 0; i < route.resources.size(); ++i) {
      if (nth(staged.resources, route.resources[i]) == name) return route.load[i];
    }
    return 0.0;
  };
  for (const Route* const route : {&there, &back}) {
    CHECK(load_on(*route, "gpu0>switch") == doctest::Approx(1 / 0.65));
    CHECK(load_on(*route, "switch>gpu0") == doctest::Approx(1 / 0.65));
  }
  CHECK(load_on(there, "switch>gpu1") == 1);
  CHECK(load_on(there, "gpu1>switch") == 0);
  CHECK(staged.between(1, 2) == peers.between(1, 2));
  // One of both directions in turn is loaded once.
  cluster.links[0].duplex = Duplex::half;
  const Route half = network_of(cluster).between(0, 1);
  CHECK(half.resources.size() == 2);
  CHECK(half.bandwidth == there.bandwidth);
  // Copies to the host take the link as it is.
  Cluster hosted = uniform_cluster(1, LinkSpec{parse_bandwidth("20GB/s"), Time{}}, {},
                                   LinkSpec{parse_bandwidth("20GB/s"), Time{}});
  for (Link& link : hosted.links) link.transport = Transport::host;
  const Network alone = network_of(hosted);
  CHECK(alone.to_host.front().bandwidth == parse_bandwidth("20GB/s"));
  CHECK(alone.from_host.front().bandwidth == parse_bandwidth("20GB/s"));
  CHECK(alone.to_host.front().load.empty());
}

TEST_CASE("whole routes are what between() says of them, from the end to the beginning") {
  const Cluster cluster = uniform_cluster(4, LinkSpec{{10'000'000'000}, Time{5}}, std::nullopt);
  for (const std::size_t most_searched : {std::size_t{0}, std::size_t{4096}}) {
    Routes routes(cluster, most_searched);
    std::vector<int> whole;
    for (int again = 0; again < 2; ++again) {
      whole.clear();
      routes.append_resources(0, 3, whole);
    }
    std::reverse(whole.begin(), whole.end());
    CHECK(whole == routes.between(0, 3).resources);
  }
}

}  // namespace
}  // namespace stageline::routes_tests
