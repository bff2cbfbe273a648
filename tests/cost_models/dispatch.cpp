// How many copies of a token do dispatchers send over which links, and do they take as long as
// their authors measured?
#include "cost_models/network/dispatch.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "sim/base/errors.hpp"
#include "tests/cost_models/collective_clusters.hpp"

namespace stageline::dispatch_tests {
namespace {

using test::cluster_of;
using test::giga;
using test::load_on;
using test::Machines;
using test::of_all;
using test::planned;

// DeepSeek-V3's tokens: 8 experts each, 4,096 tokens of 7,168 elements in bf16.
constexpr int chosen = 8;
constexpr double token_bytes = 4096.0 * 7168 * 2;

TokenRouting routed(const std::string& dispatcher, bool combine = false, int groups = 1,
                    int chosen_groups = 1) {
  return {dispatcher, combine, chosen, groups, chosen_groups};
}

Collective exchange(const Cluster& cluster, const TokenRouting& routing) {
  Collective all =
      of_all(cluster, CollectiveKind::all_to_all, static_cast<std::int64_t>(token_bytes) * chosen);
  all.dimension = Dimension::expert;
  all.routing = routing;
  return all;
}

// GB/s as the authors print them: all copies to ranks (of one machine) or to machines, over the
// time.
double logical_rate(const Machines& machines, const TokenRouting& routing) {
  const Cluster cluster = cluster_of(machines);
  const double seconds = to_seconds(alone(planned(cluster, exchange(cluster, routing)).costs));
  const int parts = machines.machines == 1 ? machines.gpus : machines.machines;
  return token_bytes * parts * chance_of_part(routing, parts) / seconds / 1e9;
}

Machines h800(int machines) { return {machines, 8, "h800", 200 * giga, 50 * giga}; }
Machines h100(int machines) { return {machines, 8, "h100", 450 * giga, 50 * giga}; }
Machines gb200(int gpus) { return {1, gpus, "gb200", 900 * giga, 50 * giga}; }

template <class Run>
std::string refusal(Run run) {
  try {
    run();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a dispatcher sends a token once to each machine that has experts for it") {
  const TokenRouting nccl{"", false, chosen, 1, 1};
  CHECK(copies_between(nccl, 8) == 7);
  CHECK(copies_between(routed("deepep"), 8) == doctest::Approx(7 * (1 - std::pow(7.0 / 8, 8))));
  // 2.2 and 4.0 times fewer than one for each expert elsewhere.
  CHECK(copies_between(nccl, 4) / copies_between(routed("hybridep"), 4) ==
        doctest::Approx(2.22).epsilon(0.01));
  CHECK(copies_between(nccl, 2) / copies_between(routed("hybridep"), 2) ==
        doctest::Approx(4.0).epsilon(0.01));
}

TEST_CASE("routing that is limited to 4 of 8 groups reaches fewer machines") {
  const TokenRouting limited = routed("deepep", false, 8, 4);
  CHECK(copies_between(limited, 8) == doctest::Approx(4 * (1 - std::pow(3.0 / 4, 8)) * 7 / 8));
  // Two groups a machine: none of a token's four is there in 15 of 70 draws, one in 40, two in 15.
  const double hit =
      40.0 / 70 * (1 - std::pow(3.0 / 4, 8)) + 15.0 / 70 * (1 - std::pow(1.0 / 2, 8));
  CHECK(copies_between(limited, 4) == doctest::Approx(3 * hit));
  // Two machines a group, of which a token with experts in it may need one.
  CHECK(chance_of_part(limited, 16) == doctest::Approx((1 - std::pow(7.0 / 8, 8)) / 2));
  CHECK(chance_of_part(limited, 1) == doctest::Approx(1));
  // Machines that share a group with others: the limit is left out.
  CHECK(chance_of_part(limited, 3) == chance_of_part(routed("deepep"), 3));
}

TEST_CASE("copies pass NICs between peers, and NVLink to the ranks that hold the experts") {
  const Cluster cluster = cluster_of(h100(2));
  const TokenRouting there = routed("deepep");
  const Route route = planned(cluster, exchange(cluster, there)).costs.route;
  const DispatchRates& rates = dispatch_rates_of("deepep", Generation::hopper, 8);
  const double nic = load_on(cluster, route, "gpu3>fabric") * rates.there.network;
  const double port = load_on(cluster, route, "gpu3>nvswitch0") * rates.there.forward;
  // A byte of progress is one of the rows of all 8 experts. The loads are as the rate allows.
  CHECK(port / nic ==
        doctest::Approx(2 * 7 * chance_of_part(there, 16) / chance_of_part(there, 2)));
  const Cluster one = cluster_of(h100(1));
  const Route inside = planned(one, exchange(one, there)).costs.route;
  CHECK(load_on(one, inside, "gpu3>fabric") == 0);
  CHECK(load_on(one, inside, "gpu3>nvswitch0") * rates.there.nvlink ==
        doctest::Approx(7 * chance_of_part(there, 8) / chosen));
}

TEST_CASE("machines of unequal size share a group: each rank passes on what its peers send it") {
  const Cluster cluster = cluster_of(h100(2));
  Collective odd = exchange(cluster, routed("deepep"));
  odd.groups = {{0, 1, 2, 3, 4, 8, 9}};
  const Route route = planned(cluster, odd).costs.route;
  CHECK(load_on(cluster, route, "gpu0>fabric") > 0);
  CHECK(load_on(cluster, route, "gpu7>fabric") == 0);
  // Five ranks send to two peers, which pass on more than the others do.
  CHECK(load_on(cluster, route, "gpu8>nvswitch1") > load_on(cluster, route, "gpu4>nvswitch0") / 4);
}

TEST_CASE("the way back loads the same links in reverse") {
  const Cluster cluster = cluster_of({2, 4, "", 400 * giga, 50 * giga});
  Collective odd = exchange(cluster, routed("deepep"));
  odd.groups = {{0, 1, 2, 4, 5}};
  const CollectivePlan there = planned(cluster, odd);
  odd.routing.combine = true;
  const CollectivePlan back = planned(cluster, odd);
  CHECK(load_on(cluster, there.costs.route, "gpu0>fabric") ==
        load_on(cluster, back.costs.route, "fabric>gpu0"));
  CHECK(load_on(cluster, there.costs.route, "fabric>gpu4") ==
        load_on(cluster, back.costs.route, "gpu4>fabric"));
  CHECK(there.algorithm == "deepep");
}

// docs/legacy.md of deepseek-ai/DeepEP; NVLink bounds EP16.
TEST_CASE("DeepEP on H800 takes what its authors measured") {
  CHECK(logical_rate(h800(1), routed("deepep")) == doctest::Approx(153).epsilon(0.03));
  CHECK(logical_rate(h800(1), routed("deepep", true)) == doctest::Approx(158).epsilon(0.03));
  CHECK(logical_rate(h800(2), routed("deepep")) == doctest::Approx(43).epsilon(0.03));
  CHECK(logical_rate(h800(4), routed("deepep")) == doctest::Approx(58).epsilon(0.03));
  CHECK(logical_rate(h800(8), routed("deepep", false, 8, 4)) == doctest::Approx(51).epsilon(0.03));
  CHECK(logical_rate(h800(8), routed("deepep", true, 8, 4)) == doctest::Approx(50).epsilon(0.03));
}

// docs/README_Hybrid-EP.md of deepseek-ai/DeepEP, calls from torch in bf16.
TEST_CASE("HybridEP on H100 and GB200 takes what its authors measured") {
  CHECK(logical_rate(h100(2), routed("hybridep")) == doctest::Approx(54.47).epsilon(0.16));
  CHECK(logical_rate(h100(2), routed("hybridep", true)) == doctest::Approx(53.35).epsilon(0.05));
  CHECK(logical_rate(h100(4), routed("hybridep")) == doctest::Approx(47.36).epsilon(0.05));
  CHECK(logical_rate(h100(8), routed("hybridep")) == doctest::Approx(41.24).epsilon(0.07));
  CHECK(logical_rate(h100(8), routed("hybridep", true)) == doctest::Approx(46.57).epsilon(0.03));
  CHECK(logical_rate(gb200(8), routed("hybridep")) == doctest::Approx(545.71).epsilon(0.03));
  CHECK(logical_rate(gb200(36), routed("hybridep")) == doctest::Approx(479.02).epsilon(0.05));
  CHECK(logical_rate(gb200(36), routed("hybridep", true)) == doctest::Approx(447.89).epsilon(0.07));
  CHECK(logical_rate({1, 8, "b200", 900 * giga, 50 * giga}, routed("hybridep")) ==
        doctest::Approx(535.94).epsilon(0.05));
  CHECK(logical_rate(gb200(32), routed("deepep")) == doctest::Approx(400).epsilon(0.07));
  CHECK(logical_rate(gb200(32), routed("deepep", true)) == doctest::Approx(190).epsilon(0.09));
}

TEST_CASE(
    "over NICs a dispatcher is faster than NCCL, the more of a token's experts share machines") {
  const Cluster cluster = cluster_of(h100(4));
  const double nccl = to_seconds(alone(planned(cluster, exchange(cluster, {})).costs));
  const double deepep =
      to_seconds(alone(planned(cluster, exchange(cluster, routed("deepep"))).costs));
  CHECK(nccl / deepep == doctest::Approx(2.22 * 0.88 / 0.8).epsilon(0.05));
}

TEST_CASE("what was measured of NCCL on a cluster says nothing of a dispatcher") {
  Cluster cluster = cluster_of(h100(1));
  const Time before = alone(planned(cluster, exchange(cluster, routed("deepep"))).costs);
  MeasuredCollective slow;
  slow.kind = CollectiveKind::all_to_all;
  slow.ranks = 8;
  slow.machines = 1;
  slow.bandwidth = {giga};
  cluster.collectives.push_back(slow);
  CHECK(alone(planned(cluster, exchange(cluster, routed("deepep"))).costs) == before);
  CHECK(alone(planned(cluster, exchange(cluster, {})).costs) > 10 * before);
}

TEST_CASE("SMs that sending takes are those of the measurement") {
  CHECK(dispatch_multiprocessors("deepep", Generation::hopper, 8) == 20);
  CHECK(dispatch_multiprocessors("deepep", Generation::blackwell, 64) == 24);
  CHECK(dispatch_multiprocessors("hybridep", Generation::blackwell, 64) == 32);
  CHECK(dispatch_multiprocessors("nccl", Generation::hopper, 8) == 16);
}

TEST_CASE("what a dispatcher cannot do is refused in one sentence") {
  const Cluster ampere = cluster_of({1, 8, "a100", 300 * giga, 25 * giga});
  CHECK(alone(planned(ampere, exchange(ampere, routed("deepep"))).costs) > Time{});
  CHECK(refusal([&] { planned(ampere, exchange(ampere, routed("hybridep"))); }) ==
        "hybridep cannot do all_to_all among gpu0, gpu1, gpu2, … (8 ranks): it sends tokens, in "
        "all-to-alls of GPUs from Hopper on");
  CHECK(refusal([&] { planned(ampere, exchange(ampere, routed("deepeep"))); }) ==
        "there is no dispatcher of tokens \"deepeep\" (did you mean \"deepep\"?); there are nccl, "
        "deepep, hybridep");
  CHECK(refusal([&] { planned(ampere, exchange(ampere, routed("deepep")), "direct"); }) ==
        "the model sends tokens to their experts by deepep, and --collectives names direct for ep; "
        "name algorithms of the other groups alone, or leave dispatch=deepep out");
}

}  // namespace stageline::dispatch_tests
