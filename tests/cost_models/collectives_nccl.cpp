// Collectives on known devices: NCCL's own model, and what was measured.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/network/chips.hpp"
#include "cost_models/network/nccl.hpp"
#include "sim/base/errors.hpp"
#include "sim/bus_bandwidth.hpp"
#include "tests/cost_models/collective_clusters.hpp"

namespace stageline::collectives_nccl_tests {
namespace {

using test::cluster_of;
using test::giga;
using test::load_on;
using test::mebi;
using test::milliseconds;
using test::of_all;
using test::planned;

NcclGroup nodes_of_eight(int nodes) {
  NcclGroup group;
  group.ranks = 8 * nodes;
  group.nodes = nodes;
  return group;
}

double ring(const NcclGroup& group, Protocol protocol) {
  return nccl_ring_latency(CollectiveKind::all_reduce, group, protocol);
}

// CLUSTER oracles, in µs.
TEST_CASE("the latencies are NCCL's") {
  const NcclGroup one = nodes_of_eight(1);
  CHECK(ring(one, Protocol::ll) == doctest::Approx(15.0));
  CHECK(ring(one, Protocol::ll128) == doctest::Approx(40.6));
  CHECK(ring(one, Protocol::simple) == doctest::Approx(56.0));
  CHECK(nccl_tree_latency(one, Protocol::simple) == doctest::Approx(64.4));
  CHECK(ring(nodes_of_eight(2), Protocol::simple) == doctest::Approx(131.6));
  CHECK(ring(nodes_of_eight(8), Protocol::simple) == doctest::Approx(585.2));
  CHECK(nccl_nvls_latency(one) == 25);
}

TEST_CASE("the network's latency counts twice for Simple, and slow hosts make each step longer") {
  NcclGroup two = nodes_of_eight(2);
  two.network_latency = 2.5;
  CHECK(ring(two, Protocol::simple) == doctest::Approx(131.6 + 2 * 2 * 2.5));
  CHECK(ring(two, Protocol::ll) == doctest::Approx(6.6 + 28 * 1.0 + 2 * (2.7 + 2.5)));
  two.network_latency = 0;
  two.network_overhead = 2;  // AMD hosts
  CHECK(ring(two, Protocol::simple) == doctest::Approx(8.4 + 28 * 6.0 + 2 * 14));
  CHECK(nccl_tree_latency(nodes_of_eight(4), Protocol::simple) ==
        doctest::Approx(8.4 + 2 * (7 * 4.0 + 2 * 14.0)));
}

TEST_CASE("a ring between nodes has a plateau, but not for little bytes or other collectives") {
  NcclGroup two = nodes_of_eight(2);
  CHECK(ring_plateau(CollectiveKind::all_reduce, Bytes{mebi}, two) == 1.4);
  CHECK(ring_plateau(CollectiveKind::all_reduce, Bytes{16 * 16 * 64 - 1}, two) == 1);
  CHECK(ring_plateau(CollectiveKind::all_reduce, Bytes{16 * 16 * 64}, two) == 1.4);
  CHECK(ring_plateau(CollectiveKind::all_gather, Bytes{mebi}, two) == 1);
  CHECK(ring_plateau(CollectiveKind::all_reduce, Bytes{mebi}, nodes_of_eight(1)) == 1);
  two.generation = Generation::volta;
  CHECK(ring_plateau(CollectiveKind::all_reduce, Bytes{mebi}, two) == 1.9);
}

TEST_CASE("a tree is corrected for its size, between powers of two in a straight line") {
  const NcclGroup one = nodes_of_eight(1);
  const auto simple = [&](std::int64_t bytes) {
    return nccl_tree_efficiency(Bytes{bytes}, one, Protocol::simple) / 0.92;
  };
  CHECK(simple(64) == doctest::Approx(0.9));
  CHECK(simple(std::int64_t{64} << 11) == doctest::Approx(0.5));  // 128 KiB
  CHECK(simple(std::int64_t{64} << 23) == doctest::Approx(0.9));
  CHECK(simple(std::int64_t{64} << 30) == doctest::Approx(0.9));
  CHECK(simple((std::int64_t{64} << 6) * 3 / 2) == doctest::Approx(0.9 - 0.1 * std::log2(1.5)));
  CHECK(nccl_tree_efficiency(Bytes{64}, one, Protocol::ll) == doctest::Approx(0.92 / 3.8));
  CHECK(nccl_tree_efficiency(Bytes{64}, one, Protocol::ll128) == doctest::Approx(0.92 * 7 / 9));
}

TEST_CASE("plans choose the protocol by size: LL, LL128, Simple") {
  const Cluster h200 = cluster_of({1, 8, "h200"});
  const auto setup = [&](const std::string& algorithm, std::int64_t bytes) {
    const auto plan = planned(h200, of_all(h200, CollectiveKind::all_reduce, bytes), algorithm);
    return to_seconds(plan.costs.setup) * 1e6;
  };
  CHECK(setup("ring", 8) == doctest::Approx(15.0));
  CHECK(setup("ring", 16 * mebi) == doctest::Approx(40.6));
  CHECK(setup("ring", 16384 * mebi) == doctest::Approx(56.0));
  CHECK(setup("tree", 16384 * mebi) == doctest::Approx(64.4));
  const Cluster two = cluster_of({2, 8, "h200"});
  const auto plan = planned(two, of_all(two, CollectiveKind::all_reduce, 16384 * mebi), "ring");
  CHECK(to_seconds(plan.costs.setup) * 1e6 == doctest::Approx(1.4 * 131.6));
}

// A bus bandwidth in GB/s as nccl-tests would print it.
double bus(const Cluster& cluster, CollectiveKind kind, std::int64_t bytes,
           const std::string& algorithm = "best") {
  const auto plan = planned(cluster, of_all(cluster, kind, bytes), algorithm);
  return bus_bandwidth(kind, static_cast<int>(cluster.devices.size()), Bytes{bytes},
                       alone(plan.costs)) /
         1e9;
}

TEST_CASE("bus bandwidth and time say the same, by the formulas of nccl-tests") {
  const Bytes bytes{64 * mebi};
  CHECK(bus_factor(CollectiveKind::all_reduce, 8) == 1.75);
  CHECK(bus_factor(CollectiveKind::all_gather, 8) == 0.875);
  CHECK(bus_factor(CollectiveKind::reduce_scatter, 2) == 0.5);
  CHECK(bus_factor(CollectiveKind::all_to_all, 4) == 0.75);
  CHECK(bus_factor(CollectiveKind::broadcast, 8) == 1);
  for (const CollectiveKind kind : all_collective_kinds) {
    const Time time = parse_time("600us");
    const double rate = bus_bandwidth(kind, 8, bytes, time);
    CHECK(abs(time_at_bus_bandwidth(kind, 8, bytes, rate) - time) <= Time{1});
  }
}

TEST_CASE("an all-reduce of 64 MiB on eight A100 takes 0.601 ms") {
  const Cluster a100 = cluster_of({1, 8, "a100", 300 * giga});
  const auto plan = planned(a100, of_all(a100, CollectiveKind::all_reduce, 64 * mebi));
  CHECK(plan.algorithm == "ring");
  CHECK(fmt::format("{:.6f}", milliseconds(plan)) == "0.600639");
  CHECK(plan.costs.setup == parse_time("86us"));
  // Of the port's 300 GB/s, 228.2 are reached: so much larger is its load.
  CHECK(load_on(a100, plan.costs.route, "gpu0>nvswitch0") == doctest::Approx(1.75 * 300 / 228.2));
  // Of slower links, the same share is reached.
  const Cluster slower = cluster_of({1, 8, "a100", 100 * giga});
  CHECK(bus(slower, CollectiveKind::all_reduce, 16384 * mebi) ==
        doctest::Approx(100 * 228.2 / 300).epsilon(1e-3));
}

struct BusTable {
  test::Machines machines;
  std::vector<double> measured;  // GB/s at 1, 4, 16, 64, 256 MiB and 1 GiB
};

// Mean error of the times over the sizes from `first` on.
double mean_error(const std::vector<BusTable>& tables, std::size_t first) {
  double sum = 0;
  int count = 0;
  for (const BusTable& table : tables) {
    const Cluster cluster = cluster_of(table.machines);
    for (std::size_t i = first; i < table.measured.size(); ++i) {
      const std::int64_t bytes = mebi << (2 * i);
      const double model = bus(cluster, CollectiveKind::all_reduce, bytes);
      const double error = table.measured[i] / model - 1;
      sum += std::abs(error);
      ++count;
    }
  }
  return sum / count;
}

// CLUSTER section 6: vTrain's tables and ml-engineering's.
TEST_CASE("the measured tables come back within a few per cent") {
  const test::Machines a100x8{1, 8, "a100", 300 * giga};
  const test::Machines a100x4{1, 4, "a100", 300 * giga};
  const test::Machines a100x2{1, 2, "a100", 300 * giga};
  const std::vector<BusTable> a100{
      {a100x8, {19.9, 78.1, 127.1, 202.6, 217.7, 229.3}},
      {a100x4, {29.8, 83.0, 141.6, 186.2, 208.9, 221.4}},
      {a100x2, {23.3, 69.6, 129.7, 166.1, 184.6, 196.9}},
  };
  CHECK(mean_error(a100, 0) < 0.045);
  CHECK(mean_error(a100, 2) < 0.03);
  const std::vector<BusTable> h200{{{1, 8, "h200"}, {39.9, 107.2, 219.9, 346.5, 436.2, 463.6}}};
  CHECK(mean_error(h200, 0) < 0.05);
  const std::vector<BusTable> b200{
      {{1, 8, "b200", 900 * giga}, {36.1, 76.5, 255.0, 400.6, 646.1, 723.3}}};
  CHECK(mean_error(b200, 0) < 0.11);
  CHECK(mean_error(b200, 2) < 0.05);
}

// 4 machines of 8 B200 with 50 GB/s a GPU (EFA): 362.0 GB/s at 1 GiB, 22.05 ms at 4 GiB. EFA
// reaches 0.73 of its nominal rate, and 0.80 is the rate of all NICs here: the model is faster.
TEST_CASE("between machines, large collectives come within 12 per cent") {
  const Cluster cluster = cluster_of({4, 8, "b200", 900 * giga, 50 * giga});
  const double rate = bus(cluster, CollectiveKind::all_reduce, 1024 * mebi);
  CHECK(rate > 362.0);
  CHECK(rate < 1.12 * 362.0);
  const auto plan = planned(cluster, of_all(cluster, CollectiveKind::all_reduce, 4096 * mebi));
  CHECK(plan.algorithm == "hierarchical");
  CHECK(milliseconds(plan) < 22.05);
  CHECK(milliseconds(plan) > 22.05 / 1.12);
}

TEST_CASE("eight H200 reach what was measured at 16 GiB, by algorithm and collective") {
  const Cluster h200 = cluster_of({1, 8, "h200"});
  const std::int64_t bytes = 16384 * mebi;
  const auto near = [](double rate) { return doctest::Approx(rate).epsilon(0.015); };
  CHECK(bus(h200, CollectiveKind::all_reduce, bytes) == near(480));
  CHECK(bus(h200, CollectiveKind::all_reduce, bytes, "ring") == near(367));
  CHECK(bus(h200, CollectiveKind::all_gather, bytes) == near(361));
  CHECK(bus(h200, CollectiveKind::reduce_scatter, bytes) == near(363));
}

// Measured gains over a ring: 1.00, 1.14, 1.19, 1.26 for 4 to 7 H200; B200 gains from 6 on.
TEST_CASE("reduction in the switch gains with the number of GPUs") {
  const auto gain = [](const std::string& kind, int gpus) {
    const Cluster cluster = cluster_of({1, gpus, kind, 900 * giga});
    const std::int64_t bytes = 16384 * mebi;
    return bus(cluster, CollectiveKind::all_reduce, bytes, "nvls") /
           bus(cluster, CollectiveKind::all_reduce, bytes, "ring");
  };
  CHECK(gain("h200", 4) == doctest::Approx(1.00).epsilon(0.03));
  CHECK(gain("h200", 5) == doctest::Approx(1.14).epsilon(0.03));
  CHECK(gain("h200", 6) == doctest::Approx(1.19).epsilon(0.03));
  CHECK(gain("h200", 7) == doctest::Approx(1.26).epsilon(0.03));
  CHECK(gain("h200", 8) == doctest::Approx(1.29).epsilon(0.03));
  CHECK(gain("b200", 5) < 1);
  CHECK(gain("b200", 6) > 1.05);
}

TEST_CASE("NVLS needs one NVLink domain and a generation that has it") {
  CHECK(nccl_nvls_efficiency(Generation::ampere) == 0);
  CHECK_THROWS_AS(bus(cluster_of({1, 8, "a100"}), CollectiveKind::all_reduce, mebi, "nvls"),
                  UsageError);
  CHECK_THROWS_AS(bus(cluster_of({2, 8, "h100"}), CollectiveKind::all_reduce, mebi, "nvls"),
                  UsageError);
}

// 8 µs, log2 of the nodes times 14/3.5 µs, 2.8 µs a rank; the network's latency twice.
TEST_CASE("with one rank a machine, small gathers go by aggregated trees, large ones by rings") {
  NcclGroup group;
  group.ranks = group.nodes = 16;
  CHECK(nccl_pat_latency(group) == doctest::Approx(8 + 4 * 4.0 + 16 * 2.8));
  group.network_latency = 3.5;
  CHECK(nccl_pat_latency(group) == doctest::Approx(8 + 4 * 6.0 + 16 * 2.8));

  const Cluster cluster = cluster_of({16, 1, "h100"});
  const auto chosen = [&](CollectiveKind kind, std::int64_t bytes) {
    return planned(cluster, of_all(cluster, kind, bytes)).algorithm;
  };
  CHECK(chosen(CollectiveKind::all_gather, mebi) == "pat");
  CHECK(chosen(CollectiveKind::reduce_scatter, mebi) == "pat");
  CHECK(chosen(CollectiveKind::all_gather, giga) == "ring");
  CHECK(chosen(CollectiveKind::all_reduce, mebi) != "pat");
  const auto plan = planned(cluster, of_all(cluster, CollectiveKind::all_gather, giga), "pat");
  // 15/16 of the bytes at 0.75 of what a ring reaches of 50 GB/s.
  CHECK(to_seconds(alone(plan.costs) - plan.costs.setup) ==
        doctest::Approx(15.0 / 16 / 50 / 0.80 / 0.75));
  CHECK_THROWS_AS(
      planned(cluster_of({2, 8, "h100"}),
              of_all(cluster_of({2, 8, "h100"}), CollectiveKind::all_gather, mebi), "pat"),
      UsageError);
}

TEST_CASE("kinds are found by their family") {
  REQUIRE(chip_of("a100-40gb") != nullptr);
  CHECK(chip_of("a100-40gb")->kind == "a100");
  CHECK(chip_of("a1000") == nullptr);
  CHECK(chip_of("") == nullptr);
  for (const MeasuredLine& line : measured_lines()) CHECK(chip_of(line.kind) != nullptr);
}

TEST_CASE("small all-reduces over many machines go by trees, large ones by rails") {
  const Cluster cluster = cluster_of({16, 8, "h100"});
  CHECK(planned(cluster, of_all(cluster, CollectiveKind::all_reduce, 1024)).algorithm == "tree");
  CHECK(planned(cluster, of_all(cluster, CollectiveKind::all_reduce, giga)).algorithm ==
        "hierarchical");
  CHECK(planned(cluster, of_all(cluster, CollectiveKind::broadcast, giga)).algorithm == "ring");
}

}  // namespace
}  // namespace stageline::collectives_nccl_tests
