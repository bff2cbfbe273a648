// How long collectives take where links carry what the cluster states, and what they ask of links.
#include "cost_models/network/collectives.hpp"

#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/bus_bandwidth.hpp"
#include "sim/lower/charges.hpp"
#include "tests/cost_models/collective_clusters.hpp"

namespace stageline::collectives_tests {
namespace {

using test::cluster_of;
using test::giga;
using test::load_on;
using test::Machines;
using test::mebi;
using test::milliseconds;
using test::of_all;
using test::planned;
using test::ranks_to;

Cluster equal_devices(int count) {
  return uniform_cluster(count, LinkSpec{Bandwidth{100 * giga}, parse_time("5us")}, {});
}

template <class Run>
std::string refusal(Run run) {
  try {
    run();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// CLUSTER oracles: 1e9 bytes at 100 GB/s and 5 µs.
TEST_CASE("a ring takes 2(n-1) latencies and 2(n-1)/n of the bytes") {
  const Cluster eight = equal_devices(8);
  const auto plan = planned(eight, of_all(eight, CollectiveKind::all_reduce, giga));
  CHECK(plan.algorithm == "ring");
  CHECK(alone(plan.costs) == parse_time("17.57ms"));
  CHECK(plan.costs.setup == parse_time("70us"));
  CHECK(plan.costs.bytes == Bytes{giga});
  for (const double load : plan.costs.route.load) CHECK(load == 1.75);
  CHECK(plan.costs.route.load.size() == 16);  // each port, both ways
  const Cluster two = equal_devices(2);
  CHECK(alone(planned(two, of_all(two, CollectiveKind::all_reduce, giga)).costs) ==
        parse_time("10.01ms"));
}

TEST_CASE("a reduce-scatter and an all-gather take as long as the all-reduce") {
  for (const int count : {2, 3, 8, 13}) {
    const Cluster cluster = equal_devices(count);
    const auto time = [&](CollectiveKind kind) {
      return alone(planned(cluster, of_all(cluster, kind, giga)).costs);
    };
    const Time apart = time(CollectiveKind::reduce_scatter) + time(CollectiveKind::all_gather);
    CHECK(abs(apart - time(CollectiveKind::all_reduce)) <= Time{1000});
  }
}

TEST_CASE("a broadcast takes n latencies and its bytes once, an all-to-all (n-1)/n of them") {
  const Cluster cluster = equal_devices(8);
  CHECK(alone(planned(cluster, of_all(cluster, CollectiveKind::broadcast, giga)).costs) ==
        parse_time("10.04ms"));
  const auto plan = planned(cluster, of_all(cluster, CollectiveKind::all_to_all, giga));
  CHECK(plan.algorithm == "direct");
  CHECK(alone(plan.costs) == parse_time("8.785ms"));
}

TEST_CASE("a ring among equal devices takes what the simulator's ring all-reduce takes") {
  for (const int count : {2, 3, 5, 8, 16}) {
    const Cluster cluster = equal_devices(count);
    Routes routes(cluster);
    Collectives collectives(cluster, routes, "ring");
    for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1000}, 25 * mebi, 7 * giga}) {
      const Time expected = ring_time(Bytes{bytes}, count, routes.between(0, 1));
      const Time time =
          alone(collectives.plan(of_all(cluster, CollectiveKind::all_reduce, bytes)).costs);
      // ring_time rounds the bytes of a rank down to whole ones: 10 ps each.
      CHECK(abs(time - expected) <= Time{12});
    }
  }
}

TEST_CASE("a cluster without links takes no time") {
  const Cluster cluster = uniform_cluster(4, {}, {});
  const auto plan = planned(cluster, of_all(cluster, CollectiveKind::all_reduce, giga));
  CHECK(alone(plan.costs) == Time{});
  CHECK(plan.costs.route.resources.empty());
}

TEST_CASE("a group of one is free") {
  const Cluster cluster = cluster_of({2, 4, "h100"});
  for (const CollectiveKind kind : all_collective_kinds) {
    const auto plan = planned(cluster, {kind, Bytes{giga}, {{0}, {5}}});
    CHECK(plan.algorithm == "none");
    CHECK(alone(plan.costs) == Time{});
    CHECK(plan.costs.route.is_free());
  }
}

// CLUSTER section 7.
TEST_CASE("a ring crosses each boundary of a machine once, whatever the order of its ranks") {
  const Cluster cluster = cluster_of({2, 4});
  for (const std::vector<int>& ranks :
       {std::vector{0, 1, 2, 3, 4, 5, 6, 7}, std::vector{0, 4, 1, 5, 2, 6, 3, 7}}) {
    const auto plan = planned(cluster, {CollectiveKind::all_reduce, Bytes{giga}, {ranks}}, "ring");
    const Route& route = plan.costs.route;
    for (const double load : route.load) CHECK(load == 1.75);
    for (const char* const used : {"gpu3>fabric", "fabric>gpu4", "gpu7>fabric", "fabric>gpu0",
                                   "gpu0>nvswitch0", "nvswitch0>gpu3", "gpu4>nvswitch1"}) {
      CHECK(load_on(cluster, route, used) == 1.75);
    }
    for (const char* const unused : {"fabric>gpu3", "gpu4>fabric", "gpu3>nvswitch0"}) {
      CHECK(load_on(cluster, route, unused) == 0);
    }
    CHECK(route.tier == Tier::network);
    CHECK(route.bandwidth == Bandwidth{28'571'428'571});  // 50 GB/s over 1.75
  }
}

TEST_CASE("a hierarchical all-reduce loads ports by 2(g-1)/g and NICs by 2(k-1)/(k g)") {
  const Cluster cluster = cluster_of({4, 8});
  const auto plan = planned(cluster, of_all(cluster, CollectiveKind::all_reduce, giga));
  CHECK(plan.algorithm == "hierarchical");
  const Route& route = plan.costs.route;
  CHECK(route.resources.size() == 2 * 2 * 32);
  for (const int gpu : {0, 7, 13, 31}) {
    const std::string port = fmt::format("gpu{}>nvswitch{}", gpu, gpu / 8);
    CHECK(load_on(cluster, route, port) == doctest::Approx(1.75));
    CHECK(load_on(cluster, route, fmt::format("gpu{}>fabric", gpu)) == doctest::Approx(0.1875));
    CHECK(load_on(cluster, route, fmt::format("fabric>gpu{}", gpu)) == doctest::Approx(0.1875));
  }
  const auto half = planned(cluster, of_all(cluster, CollectiveKind::all_gather, giga));
  CHECK(load_on(cluster, half.costs.route, "gpu0>nvswitch0") == doctest::Approx(0.875));
  CHECK(load_on(cluster, half.costs.route, "gpu0>fabric") == doctest::Approx(0.09375));
}

TEST_CASE("an all-to-all loads ports by (g-1)/n and NICs by (n-g)/n") {
  const Cluster cluster = cluster_of({2, 4});
  const auto plan = planned(cluster, of_all(cluster, CollectiveKind::all_to_all, giga));
  for (int gpu = 0; gpu < 8; ++gpu) {
    const std::string port = fmt::format("gpu{}>nvswitch{}", gpu, gpu / 4);
    CHECK(load_on(cluster, plan.costs.route, port) == doctest::Approx(3.0 / 8));
    CHECK(load_on(cluster, plan.costs.route, fmt::format("fabric>gpu{}", gpu)) ==
          doctest::Approx(4.0 / 8));
  }
}

TEST_CASE("no port of a double tree carries more than twice the bytes, for any machines") {
  for (const int machines : {1, 2, 3, 4, 5, 8, 11, 16}) {
    const Cluster cluster = cluster_of({machines, 2});
    const auto plan = planned(cluster, of_all(cluster, CollectiveKind::all_reduce, giga), "tree");
    double up = 0;
    for (const double load : plan.costs.route.load) CHECK(load <= 2);
    for (int gpu = 0; gpu < 2 * machines; gpu += 2) {
      up += load_on(cluster, plan.costs.route, fmt::format("gpu{}>fabric", gpu));
    }
    // Each machine but the root sends up half of the bytes in each tree, and gets as many down.
    CHECK(up == doctest::Approx(2.0 * (machines - 1)));
  }
}

// A ring sends and receives at once, so that each direction has half of what one way has.
TEST_CASE("a ring through the host's memory has 0.65 of a link for both directions together") {
  Cluster cluster = cluster_of({1, 4, "", 20 * giga, giga});
  for (Link& link : cluster.links) link.tier = Tier::pcie;
  const Collective asked = of_all(cluster, CollectiveKind::all_gather, giga);
  const double peers = milliseconds(planned(cluster, asked, "ring"));
  for (Link& link : cluster.links) link.transport = Transport::host;
  const CollectivePlan staged = planned(cluster, asked, "ring");
  CHECK(milliseconds(staged) == doctest::Approx(peers * 2 / 0.65).epsilon(1e-6));
  CHECK(load_on(cluster, staged.costs.route, "gpu0>nvswitch0") == doctest::Approx(2 * 0.75 / 0.65));
}

TEST_CASE("what a link over TCP carries is what NCCL reaches there") {
  const auto time = [&](Transport transport) {
    Cluster cluster = cluster_of({2, 1, "h100", 450 * giga, 1'875'000'000});
    for (Link& link : cluster.links) {
      if (link.tier == Tier::network) link.transport = transport;
    }
    const CollectivePlan plan =
        planned(cluster, of_all(cluster, CollectiveKind::all_gather, giga), "ring");
    return to_seconds(alone(plan.costs) - plan.costs.setup);
  };
  CHECK(time(Transport::tcp) == doctest::Approx(0.5 / 1.875).epsilon(1e-6));
  CHECK(time(Transport::stated) == doctest::Approx(0.5 / 1.875 / 0.8).epsilon(1e-6));
}

// CLUSTER oracle, measured with nccl-tests on 4 machines of 8 B200: 22.05 ms.
TEST_CASE("the parts of a hierarchical all-reduce bracket a measured one") {
  const std::int64_t bytes = std::int64_t{4} << 30;
  const Cluster cluster = cluster_of({4, 8, "", 740'500'000'000, 50 * giga});
  const auto pipelined = planned(cluster, of_all(cluster, CollectiveKind::all_reduce, bytes));
  CHECK(fmt::format("{:.1f}", milliseconds(pipelined)) == "16.1");
  std::vector<std::vector<int>> inside(4);
  std::vector<std::vector<int>> rails(8);
  for (int gpu = 0; gpu < 32; ++gpu) {
    nth(inside, gpu / 8).push_back(gpu);
    nth(rails, gpu % 8).push_back(gpu);
  }
  const auto time = [&](CollectiveKind kind, std::int64_t of,
                        const std::vector<std::vector<int>>& groups) {
    return milliseconds(planned(cluster, {kind, Bytes{of}, groups}));
  };
  const double nvlink = time(CollectiveKind::reduce_scatter, bytes, inside) +
                        time(CollectiveKind::all_gather, bytes, inside);
  const double network = time(CollectiveKind::all_reduce, bytes / 8, rails);
  CHECK(fmt::format("{:.2f}", nvlink) == "10.15");
  CHECK(fmt::format("{:.1f}", network) == "16.1");
  CHECK(fmt::format("{:.1f}", nvlink + network) == "26.3");
  CHECK(milliseconds(pipelined) < 22.05);
  CHECK(nvlink + network > 22.05);
}

TEST_CASE("groups that run at once share a NIC") {
  const Cluster cluster = cluster_of({2, 4, "", 450 * giga, 50 * giga, true});
  const auto with = [&](const std::vector<std::vector<int>>& groups) {
    return planned(cluster, {CollectiveKind::all_reduce, Bytes{giga}, groups});
  };
  const auto one = with({{0, 4}});
  const auto two = with({{0, 4}, {1, 5}});
  CHECK(load_on(cluster, one.costs.route, "nvswitch0>fabric") == 1);
  CHECK(load_on(cluster, two.costs.route, "nvswitch0>fabric") == 2);
  CHECK(load_on(cluster, two.costs.route, "gpu0>nvswitch0") == 1);
  CHECK(alone(two.costs) == alone(one.costs) + alone(one.costs));
  // Their order says nothing.
  const auto four = with({{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(with({{3, 7}, {1, 5}, {0, 4}, {2, 6}}).costs == four.costs);
  CHECK(load_on(cluster, four.costs.route, "nvswitch1>fabric") == 4);
}

TEST_CASE("groups of other replicas load links, and their own routes say nothing") {
  Cluster cluster = cluster_of({2, 4, "", 450 * giga, 50 * giga, true});
  const auto with = [&](const std::vector<std::vector<int>>& groups,
                        const std::vector<std::vector<int>>& beside) {
    Collective asked{CollectiveKind::all_reduce, Bytes{giga}, groups};
    asked.beside = beside;
    return planned(cluster, asked).costs;
  };
  const CollectiveCosts together = with({{0, 4}, {1, 5}}, {});
  CHECK(alone(with({{0, 4}}, {{1, 5}})) == alone(together));
  CHECK(alone(with({{0, 1}}, {{2, 6}})) == alone(with({{0, 1}}, {})));
  // A replica whose own link is slow is slow alone.
  for (Link& link : cluster.links) {
    if (link.name.rfind("1-", 0) == 0) link.bandwidth = Bandwidth{giga};
  }
  CHECK(alone(with({{0, 4}}, {{1, 5}})) == alone(together));
  CHECK(alone(with({{1, 5}}, {{0, 4}})) > alone(together) * 10);
}

TEST_CASE("groups beside that cannot run an algorithm run the best for them") {
  // Of four-GPU machines: the group has two and two, which hierarchical can do, and the ones beside
  // have one and three.
  const Cluster cluster = cluster_of({3, 4, "h100", 450 * giga, 50 * giga, true});
  Collective asked{CollectiveKind::all_reduce, Bytes{giga}, {{0, 1, 4, 5}}};
  const auto load_of = [&](const std::string& algorithms) {
    return load_on(cluster, planned(cluster, asked, algorithms).costs.route, "nvswitch1>fabric");
  };
  const double own = load_of("best");
  const std::string_view chosen = planned(cluster, asked).algorithm;
  CHECK(chosen == "hierarchical");
  CHECK(own > 0);
  asked.beside = {{6, 8, 9, 10}};
  // The ring, or the tree, of the groups beside crosses from machine 1 to machine 2.
  CHECK(load_of("best") > own);
  const CollectivePlan with_others = planned(cluster, asked);
  CHECK(with_others.costs.route.bandwidth <
        planned(cluster, {asked.kind, asked.bytes, asked.groups}).costs.route.bandwidth);
  // Named, it must do for all that run it.
  CHECK_THROWS_WITH_AS(planned(cluster, asked, "hierarchical"),
                       doctest::Contains("the algorithm hierarchical cannot do all_reduce"),
                       UsageError);
}

TEST_CASE("groups that cross machines and groups that do not are one flow") {
  const Cluster cluster = cluster_of({3, 4, "h100"});
  const std::vector<std::vector<int>> threes{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10, 11}};
  const auto plan = planned(cluster, {CollectiveKind::all_reduce, Bytes{giga}, threes}, "ring");
  CHECK(load_on(cluster, plan.costs.route, "gpu3>fabric") > 1);
  CHECK(load_on(cluster, plan.costs.route, "gpu0>nvswitch0") > 1);
  CHECK(load_on(cluster, plan.costs.route, "gpu0>fabric") == 0);
  const auto inside =
      planned(cluster, {CollectiveKind::all_reduce, Bytes{giga}, {threes[0]}}, "ring");
  CHECK(plan.costs.setup > inside.costs.setup);
}

TEST_CASE("time grows with the bytes, and is never below what the links allow") {
  for (const Machines& machines :
       {Machines{1, 8}, Machines{4, 8}, Machines{1, 8, "a100", 300 * giga}, Machines{1, 8, "h200"},
        Machines{1, 4, "h200"}, Machines{1, 8, "b200", 900 * giga}, Machines{2, 8, "h100"},
        Machines{8, 4, "a100", 300 * giga, 25 * giga}, Machines{4, 1, "h100"},
        Machines{4, 8, "v100", 150 * giga, 12 * giga, true}}) {
    const Cluster cluster = cluster_of(machines);
    const int ranks = machines.machines * machines.gpus;
    Routes routes(cluster);
    for (const CollectiveKind kind : all_collective_kinds) {
      for (const char* const algorithm : {"best", "ring", "tree", "nvls", "direct"}) {
        Collectives collectives(cluster, routes, algorithm);
        Time before{};
        for (double size = 1; size < 4e10; size *= 1.3) {
          const auto bytes = static_cast<std::int64_t>(size);
          CollectivePlan plan;
          try {
            plan = collectives.plan({kind, Bytes{bytes}, {ranks_to(ranks)}});
          } catch (const UsageError&) {
            break;  // not of this kind
          }
          const Time time = alone(plan.costs);
          CHECK_MESSAGE(time >= before, algorithm, " ", name(kind), " of ", bytes, " on ",
                        machines.kind);
          before = time;
          if (plan.algorithm != "ring") continue;
          const std::int64_t narrowest = machines.machines > 1 ? machines.nic : machines.nvlink;
          // Rounded to whole picoseconds, by a bandwidth of whole bytes a second.
          CHECK((to_seconds(time) + 1e-12) * (1 + 1e-10) >= bus_factor(kind, ranks) *
                                                                static_cast<double>(bytes) /
                                                                static_cast<double>(narrowest));
        }
      }
    }
  }
}

TEST_CASE("what cannot be planned is refused with its numbers") {
  const Cluster cluster = cluster_of({2, 2});
  Routes routes(cluster);
  CHECK(has(refusal([&] { Collectives(cluster, routes, "rings"); }),
            "there is no algorithm of collectives \"rings\" (did you mean \"ring\"?); there are "
            "ring, tree, hierarchical, nvls, pat, direct, best"));
  const auto refused = [&](const Collective& collective, const std::string& algorithm) {
    return refusal([&] { planned(cluster, collective, algorithm); });
  };
  CHECK(has(refused({CollectiveKind::all_gather, Bytes{1}, {{0, 1, 2, 3}}}, "tree"),
            "the algorithm tree cannot do all_gather among gpu0, gpu1, gpu2, … (4 ranks)"));
  CHECK(has(refused({CollectiveKind::all_reduce, Bytes{1}, {{0, 1}}}, "hierarchical"),
            "the algorithm hierarchical cannot do all_reduce among gpu0, gpu1"));
  CHECK(has(refused({CollectiveKind::all_reduce, Bytes{1}, {{0, 1}, {2}}}, "best"),
            "one has 2 ranks (gpu0, gpu1) and another 1 (gpu2)"));
  CHECK(has(refused({CollectiveKind::all_reduce, Bytes{1}, {{0, 1, 0}}}, "best"),
            "gpu0 is twice in one group"));
  CHECK(has(refused({CollectiveKind::all_to_all, Bytes{1}, {{0, 1}}, Dimension::expert}, "ring"),
            "direct can: give --collectives ep=direct, or leave it to best"));
  Cluster apart = cluster;
  std::erase_if(apart.links, [](const Link& link) { return link.tier == Tier::network; });
  CHECK(has(refusal([&] { planned(apart, of_all(apart, CollectiveKind::all_reduce, 1)); }),
            "no link leads from"));
  CHECK(planned(apart, {CollectiveKind::all_reduce, Bytes{1}, {{0, 1}, {2, 3}}}).algorithm ==
        "ring");
}

TEST_CASE("an algorithm may be named for all collectives or for those of some groups") {
  CHECK(parse_algorithms("ring") == AlgorithmNames{"ring", "ring", "ring", "ring", "ring", "ring"});
  CHECK(parse_algorithms("dp=ring,tp=nvls") ==
        AlgorithmNames{"nvls", "best", "best", "ring", "best", "best"});
  const auto refused = [](const std::string& text) {
    return refusal([&] { parse_algorithms(text); });
  };
  CHECK(has(refused("tp=ring,dp"),
            "--collectives tp=ring,dp: \"dp\" names no group; write GROUP=ALGORITHM[,…]"));
  CHECK(has(refused("tq=ring"), "a group of --collectives is one of tp, cp, ep, dp, pp"));
  CHECK(has(refused("tp=ring,tp=tree"), "--collectives tp=ring,tp=tree names tp twice"));
  CHECK(has(refused("tp=rings"), "there is no algorithm of collectives \"rings\""));
  CHECK(has(refused("tp="), "there is no algorithm of collectives \"\""));

  const Cluster cluster = cluster_of({1, 8, "h100"});
  Collective large = of_all(cluster, CollectiveKind::all_reduce, giga);
  CHECK(planned(cluster, large, "tp=ring").algorithm == "nvls");
  large.dimension = Dimension::tensor;
  CHECK(planned(cluster, large, "tp=ring").algorithm == "ring");
}

TEST_CASE("rails without a link between them are enough for a hierarchical all-reduce") {
  Cluster cluster = cluster_of({2, 2});
  const int fabric = static_cast<int>(cluster.devices.size() + cluster.hosts.size()) + 2;
  cluster.switches.emplace_back("rail1");
  for (Link& link : cluster.links) {
    if (link.to == fabric && link.from % 2 == 1) link.to = fabric + 1;
  }
  const auto plan = planned(cluster, of_all(cluster, CollectiveKind::all_reduce, giga));
  CHECK(plan.algorithm == "hierarchical");
  CHECK(load_on(cluster, plan.costs.route, "gpu1>rail1") == 0.5);
  CHECK(has(
      refusal([&] { planned(cluster, of_all(cluster, CollectiveKind::all_reduce, giga), "ring"); }),
      "no link leads from gpu1 to gpu2"));
}

// Eight dies, of which some are joined directly: 0-1, 2-3, 4-5, 6-7 at 200, 2-4, 6-0 at 100, 1-3,
// 5-7 at 50 GB/s, and all with the CPU at 36.
Cluster mesh_of_dies() {
  Cluster mesh;
  mesh.hosts.push_back({"cpu", {}});
  for (int die = 0; die < 8; ++die) {
    Device device;
    device.name = "die" + std::to_string(die);
    device.host = 0;
    mesh.devices.push_back(device);
  }
  const auto join = [&mesh](int from, int to, int rate, const char* latency) {
    Link link;
    link.name = std::to_string(from) + "-" + std::to_string(to);
    link.from = from;
    link.to = to;
    link.bandwidth = Bandwidth{rate * giga};
    link.latency = parse_time(latency);
    mesh.links.push_back(link);
  };
  constexpr int cpu = 8;
  for (int die = 0; die < 8; ++die) join(die, cpu, 36, "2us");
  for (int die = 0; die < 8; die += 2) join(die, die + 1, 200, "1us");
  join(2, 4, 100, "1us");
  join(6, 0, 100, "1us");
  join(1, 3, 50, "1us");
  join(5, 7, 50, "1us");
  return mesh;
}

TEST_CASE("a ring takes direct links where a ring of them exists") {
  // 0-1-3-2-4-5-7-6: 1.75 GB over the narrowest, of 50 GB/s, and 14 latencies of 1 µs. In the order
  // of the ranks it crosses the CPU: 1.75 GB over 36 GB/s are 48.6 ms.
  const Cluster mesh = mesh_of_dies();
  const auto plan = planned(mesh, of_all(mesh, CollectiveKind::all_reduce, giga), "ring");
  CHECK(abs(alone(plan.costs) - parse_time("35.014ms")) <= Time{1});
  CHECK(plan.costs.route.load.size() == 8);
  for (const double load : plan.costs.route.load) CHECK(load == 1.75);
}

TEST_CASE("without a ring of direct links the ranks keep their order") {
  Cluster mesh = mesh_of_dies();
  std::erase_if(mesh.links, [](const Link& link) { return link.name == "5-7"; });
  const auto plan = planned(mesh, of_all(mesh, CollectiveKind::all_reduce, giga), "ring");
  CHECK(alone(plan.costs) == Time{48'611'111'112 + 14 * 4'000'000});
}

}  // namespace
}  // namespace stageline::collectives_tests
