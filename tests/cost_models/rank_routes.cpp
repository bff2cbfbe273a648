// Are routes between ranks, found when they are asked for, those of a table of all of them?
#include "cost_models/network/rank_routes.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cost_models/network/ranked_cluster.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/model.hpp"
#include "tests/cost_models/collective_clusters.hpp"
#include "tests/schedules/random_cluster.hpp"
#include "tests/text.hpp"

namespace stageline::rank_routes_tests {
namespace {

struct Table {
  std::vector<Route> routes;  // ranks × ranks
  std::vector<Route> to_host;
  std::vector<Route> from_host;
  std::vector<std::string> resources;
};

std::vector<int> members(const RankGrid& grid, const PipelineRank& rank) {
  std::vector<int> all;
  for (int t = 0; t < grid.degrees().tensor; ++t) {
    for (const int device : grid.holders(rank.pipeline, t, rank.data)) all.push_back(device);
  }
  return all;
}

Route together(const std::vector<Route>& routes, const std::vector<Bandwidth>& capacity,
               int senders) {
  Route all;
  std::map<int, double> load;
  for (const Route& route : routes) {
    all.latency = std::max(all.latency, route.latency);
    all.tier = std::max(all.tier, route.tier);
    for (const int resource : route.resources) ++load[resource];
  }
  std::optional<double> least;
  for (const auto& [resource, bytes] : load) {
    all.resources.push_back(resource);
    all.load.push_back(bytes / senders);
    const double share = static_cast<double>(nth(capacity, resource).bytes_per_second) / bytes;
    if (!least || share < *least) least = share;
  }
  if (least) {
    all.bandwidth = {std::max<std::int64_t>(1, static_cast<std::int64_t>(*least)) * senders};
  }
  return all;
}

// All routes row by row, then those to hosts and back; resources by their first use.
Table table_of(const Cluster& cluster, const RankGrid& grid, int replicas, int senders) {
  Routes routes(cluster);
  Table table;
  std::vector<PipelineRank> ranks;
  for (int r = 0; r < replicas; ++r) {
    for (int p = 0; p < grid.degrees().pipeline; ++p) ranks.push_back({p, replicas == 1 ? -1 : r});
  }
  for (const PipelineRank& from : ranks) {
    for (const PipelineRank& to : ranks) {
      std::vector<Route> pairs;
      const std::vector<int> here = members(grid, from);
      const std::vector<int> there = members(grid, to);
      const bool joined = from.data == to.data && from.pipeline != to.pipeline;
      for (std::size_t i = 0; joined && i < here.size(); ++i) {
        pairs.push_back(routes.between(here[i], there[i]));
      }
      table.routes.push_back(together(pairs, routes.capacity(), senders));
    }
    std::vector<Route> there;
    std::vector<Route> back;
    for (const int device : members(grid, from)) {
      there.push_back(routes.host_routes(device).there);
      back.push_back(routes.host_routes(device).back);
    }
    table.to_host.push_back(together(there, routes.capacity(), 1));
    table.from_host.push_back(together(back, routes.capacity(), 1));
  }
  std::map<int, int> number;
  for (std::vector<Route>* const all : {&table.routes, &table.to_host, &table.from_host}) {
    for (Route& route : *all) {
      for (int& resource : route.resources) {
        const auto next = static_cast<int>(number.size());
        const auto [known, is_new] = number.emplace(resource, next);
        if (is_new) table.resources.push_back(nth(routes.names(), resource));
        resource = known->second;
      }
    }
  }
  return table;
}

// Gradients of so many bytes a stage are reduced.
Costs costs_between(RankedCluster& ranked, bool divided, Bytes gradients = {}) {
  const Degrees& degrees = ranked.grid().degrees();
  Model model;
  model.layers.resize(as_size(degrees.pipeline));
  for (Layer& layer : model.layers) layer.weights = layer.gradients = gradients;
  model.sharding = {degrees.tensor, degrees.context, 1, divided};
  Partition partition;
  partition.stages = degrees.pipeline;
  Placement placement;
  placement.stage.resize(as_size(degrees.pipeline));
  for (int p = 0; p < degrees.pipeline; ++p) {
    partition.stage_of.push_back(p);
    for (int r = 0; r < ranked.replicas(); ++r) {
      nth(placement.stage, p).replicas.push_back(r * degrees.pipeline + p);
    }
  }
  Costs costs;
  costs.stage.resize(as_size(degrees.pipeline));
  return ranked.priced(costs, model, partition, placement);
}

Network network_between(RankedCluster& ranked, bool divided) {
  return costs_between(ranked, divided).network;
}

// The entries of a route for the resources of so many names, by name.
std::map<std::string, double> named_loads(const Route& route,
                                          const std::vector<std::string>& resources,
                                          const std::vector<std::string>& kept) {
  std::map<std::string, double> loads;
  for (std::size_t i = 0; i < route.resources.size(); ++i) {
    const std::string& name = nth(resources, route.resources[i]);
    if (std::count(kept.begin(), kept.end(), name) == 0) continue;
    loads[name] = route.load.empty() ? 1 : route.load[i];
  }
  return loads;
}

// What all routes of a table ask of one resource.
std::vector<double> asked_of(const Table& table, int resource) {
  std::vector<double> loads;
  for (const auto* const routes : {&table.routes, &table.to_host, &table.from_host}) {
    for (const Route& route : *routes) {
      double& load = loads.emplace_back(0);
      for (std::size_t i = 0; i < route.resources.size(); ++i) {
        if (route.resources[i] == resource) load = route.load[i];
      }
    }
  }
  return loads;
}

// One resource stands for others where every route asks the same of both.
void check_folded(const Network& network, const Table& table) {
  const auto same = [&](const Route& folded, const Route& whole) {
    CHECK(folded.bandwidth == whole.bandwidth);
    CHECK(folded.latency == whole.latency);
    CHECK(folded.tier == whole.tier);
    CHECK(named_loads(folded, network.resources, network.resources) ==
          named_loads(whole, table.resources, network.resources));
  };
  for (int from = 0; from < network.devices; ++from) {
    for (int to = 0; to < network.devices; ++to) {
      same(network.between(from, to), nth(table.routes, from * network.devices + to));
    }
    same(nth(network.to_host, from), nth(table.to_host, from));
    same(nth(network.from_host, from), nth(table.from_host, from));
  }
  const auto at = [&](const std::string& name) {
    return static_cast<int>(std::find(table.resources.begin(), table.resources.end(), name) -
                            table.resources.begin());
  };
  for (int resource = 0; resource < static_cast<int>(table.resources.size()); ++resource) {
    CHECK(std::any_of(network.resources.begin(), network.resources.end(),
                      [&](const std::string& name) {
                        return at(name) < static_cast<int>(table.resources.size()) &&
                               asked_of(table, at(name)) == asked_of(table, resource);
                      }));
  }
}

TEST_CASE(
    "routes between ranks are those of a table of all pairs, down to the resources' numbers") {
  std::mt19937 random(61);
  const auto up_to = [&](int most) { return 1 + static_cast<int>(random() % as_size(most)); };
  int compared = 0;
  int folded = 0;
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    Degrees degrees;
    degrees.tensor = up_to(2);
    degrees.context = up_to(2);
    degrees.data = up_to(2);
    degrees.pipeline = up_to(4);
    const Cluster cluster = test::random_cluster(random, degrees.width() * degrees.pipeline);
    if (cluster.links.empty()) continue;
    const RankGrid grid(degrees);
    const bool all = random() % 2 == 0;
    std::optional<RankedCluster> ranked;
    const std::string why =
        test::complaint<UsageError>([&] { ranked.emplace(cluster, degrees, "best", "none", all); });
    const int replicas = ranked ? ranked->replicas() : all ? degrees.data : 1;
    const std::string why_not =
        test::complaint<UsageError>([&] { table_of(cluster, grid, replicas, 1); });
    if (!ranked) {
      CHECK(!why.empty());
      if (all) CHECK(why == why_not);
      ++refused;
      continue;
    }
    CHECK(why_not.empty());
    for (const bool divided : {false, true}) {
      Network network;
      const std::string no_collective =
          test::complaint<UsageError>([&] { network = network_between(*ranked, divided); });
      if (!no_collective.empty()) continue;  // data-parallel ranks that no link joins
      const Table table = table_of(cluster, grid, replicas, divided ? 1 : degrees.tensor);
      ++compared;
      if (ranked->copies() > 1) {
        check_folded(network, table);
        ++folded;
        continue;
      }
      CHECK(network.to_host == table.to_host);
      CHECK(network.from_host == table.from_host);
      const int ranks = replicas * degrees.pipeline;
      for (int from = 0; from < ranks; ++from) {
        for (int to = 0; to < ranks; ++to) {
          CHECK(network.between(from, to) == nth(table.routes, from * ranks + to));
        }
      }
      REQUIRE(network.resources.size() >= table.resources.size());
      CHECK(std::equal(table.resources.begin(), table.resources.end(), network.resources.begin()));
      CHECK(network.routes.empty());
    }
  }
  CHECK(compared > 200);
  CHECK(folded > 5);
  CHECK(refused > 20);
}

TEST_CASE("the network of ranks outlives them, and has as many resources as its routes take") {
  Degrees degrees;
  degrees.data = 2;
  degrees.pipeline = 3;
  std::optional<RankedCluster> ranked;
  ranked.emplace(uniform_cluster(6, LinkSpec{{10'000'000'000}, Time{5}}, std::nullopt), degrees);
  const Network network = network_between(*ranked, false);
  ranked.reset();
  CHECK(network.between(0, 2).latency == Time{5});
  CHECK(network.between(1, 1).is_free());
  CHECK(network.resources.size() == 6);  // of one replica, which stands for both
}

// Machines of eight devices, two to a NIC.
Cluster machines_with_shared_nics(int machines) {
  Cluster cluster = uniform_cluster(8 * machines, std::nullopt, std::nullopt);
  const int hosts = static_cast<int>(cluster.hosts.size());
  const int first = static_cast<int>(cluster.devices.size()) + hosts;
  const int fabric = first;
  cluster.switches = {"fabric"};
  for (int nic = 0; nic < 4 * machines; ++nic) {
    cluster.switches.push_back(fmt::format("nic{}", nic));
    const int at = first + 1 + nic;
    for (const int device : {2 * nic, 2 * nic + 1}) {
      cluster.links.push_back(
          {fmt::format("port{}", device), device, at, {100'000'000'000}, Time{}, Duplex::full});
    }
    cluster.links.push_back(
        {fmt::format("up{}", nic), at, fabric, {10'000'000'000}, Time{}, Duplex::full});
  }
  return cluster;
}

Degrees degrees_of(int data, int pipeline) {
  Degrees degrees;
  degrees.data = data;
  degrees.pipeline = pipeline;
  return degrees;
}

TEST_CASE("what is stored of alike replicas does not grow with their number") {
  const auto entries_with = [](int replicas, const std::string& algorithm) {
    Degrees degrees;
    degrees.tensor = 4;  // two replicas a machine, whose NICs carry unlike parts of a ring
    degrees.data = replicas;
    degrees.pipeline = 4;
    RankedCluster ranked(test::cluster_of({2 * replicas, 8}), degrees, algorithm, "none");
    REQUIRE(ranked.replicas() == 1);
    const Costs costs = costs_between(ranked, true, Bytes{1 << 30});
    std::size_t entries = costs.network.resources.size() + costs.network.capacity.size();
    for (int from = 0; from < 4; ++from) {
      for (int to = 0; to < 4; ++to) {
        entries += costs.network.between(from, to).resources.size();
      }
    }
    for (const StageCosts& stage : costs.stage) {
      REQUIRE(stage.reduction);
      CHECK(!stage.reduction->route.resources.empty());
      entries += stage.reduction->route.resources.size();
    }
    return entries;
  };
  for (const std::string algorithm : {"best", "ring", "hierarchical"}) {
    CAPTURE(algorithm);
    const std::size_t few = entries_with(4, algorithm);
    CHECK(entries_with(16, algorithm) == few);
    CHECK(entries_with(256, algorithm) == few);
    CHECK(few < 200);
  }
  // A tree's ranks carry unlike loads.
  CHECK(entries_with(256, "tree") < 2 * entries_with(16, "tree"));
}

TEST_CASE("replicas that share NICs with more or fewer others are all simulated") {
  const Cluster cluster = machines_with_shared_nics(8);
  // Every NIC is of two replicas of one pipeline rank.
  CHECK(RankedCluster(cluster, degrees_of(8, 8)).replicas() == 1);
  CHECK(RankedCluster(cluster, degrees_of(4, 8)).replicas() == 1);
  // Of nine replicas, one shares its NIC with another rank's.
  const RankedCluster uneven(cluster, degrees_of(9, 4));
  CHECK(uneven.replicas() == 9);
  CHECK(uneven.shares_unequally());
  CHECK_FALSE(RankedCluster(cluster, degrees_of(8, 4)).shares_unequally());
  // More than a stage can have: one stands for all, which a note says.
  const RankedCluster many(machines_with_shared_nics(25), degrees_of(65, 3));
  CHECK(many.replicas() == 1);
  CHECK(many.shares_unequally());
}

}  // namespace
}  // namespace stageline::rank_routes_tests
