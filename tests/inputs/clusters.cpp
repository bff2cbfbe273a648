// Does a name on the command line become the cluster that it names, with the memory that was given?
#include "tools/inputs/clusters.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "sim/base/errors.hpp"
#include "tests/text.hpp"
#include "traces/traces.hpp"

namespace stageline::clusters_tests {
namespace {

ClusterRequest named(const std::string& cluster) {
  ClusterRequest request;
  request.cluster = cluster;
  return request;
}

std::string refusal(const std::string& cluster) {
  return test::complaint<std::runtime_error>([&] { choose_cluster(named(cluster)); });
}

constexpr Bytes driver{81559LL << 20U};

TEST_CASE("a name with a star is so many machines") {
  const ClusterChoice choice = choose_cluster(named("h100x8*16"));
  REQUIRE(choice.fixed);
  CHECK(choice.fixed->name == "h100x8*16");
  CHECK(choice.fixed->devices.size() == 128);
  CHECK(choice.fixed->hosts.size() == 16);
  CHECK(cluster_of(choice, 12).devices.back().name == "m1.gpu3");
  const ClusterChoice one = choose_cluster(named("h100x8*1"));
  CHECK(*one.fixed == *choose_cluster(named("h100x8")).fixed);
  CHECK(refusal("h100x8*0") ==
        "--cluster h100x8*0: behind the * is how many times its machines are taken, a whole number "
        "from 1 to 65536 (it is \"0\")");
  for (const char* const text :
       {"h100x8*", "h100x8*two", "h100x8*-1", "h100x8*2.5", "h100x8*99999"}) {
    CHECK(refusal(text).find("a whole number from 1 to 65536") != std::string::npos);
  }
  CHECK(refusal("h100x9*2").find("there is no cluster \"h100x9\" (did you mean \"h100x8\"?)") == 0);
  CHECK(refusal("h100x8*9000") ==
        "h100x8: 9000 machines of 8 devices are 72000, and a cluster has at most 65536");
  CHECK(refusal("rtx4090x8*4") ==
        "rtx4090x8: 4 machines need a \"network\" that joins them, and \"rtx4090x8\" has none; "
        "describe its NICs, or take one machine");
}

TEST_CASE("a bundled name may be written with capital letters") {
  const ClusterChoice choice = choose_cluster(named("H100x8*2"));
  REQUIRE(choice.fixed);
  CHECK(choice.fixed->devices == choose_cluster(named("h100x8*2")).fixed->devices);
}

TEST_CASE("too few devices: the multiple that has as many is named, if there is one") {
  const auto said = [](const std::string& cluster, int devices) {
    return test::complaint<UsageError>(
        [&] { cluster_of(choose_cluster(named(cluster)), devices); });
  };
  CHECK(said("h100x8", 64) ==
        "cluster \"h100x8\" has 8 devices, and 64 were asked for; give --devices 8 or fewer, "
        "--cluster \"h100x8*8\" for more machines, or equal devices by --link");
  CHECK(said("h100x8*4", 33).find("--cluster \"h100x8*5\"") != std::string::npos);
  CHECK(said("gb200x72", 73).find("--cluster \"gb200x72*2\"") != std::string::npos);
  // Neither without a network, nor beyond what a cluster may have.
  CHECK(said("rtx4090x8", 9).find("another --cluster") != std::string::npos);
  CHECK(said("p4d", 66000).find("another --cluster") != std::string::npos);
  CHECK(said("h100x8", 0) == "--devices must be at least 1 (it is 0)");
}

TEST_CASE("--memory and --reserve replace those of every device") {
  ClusterRequest request = named("h100x8");
  request.memory = Bytes{40'000'000'000};
  const Cluster small = *choose_cluster(request).fixed;
  CHECK(usable_memory(small.devices[7]) == Bytes{40'000'000'000});

  request.memory.reset();
  request.reserve = Bytes{2'000'000'000};
  const Cluster reserved = *choose_cluster(request).fixed;
  CHECK(reserved.devices[7].memory == driver);
  CHECK(usable_memory(reserved.devices[7]) == driver - Bytes{2'000'000'000});
  CHECK(reserved.overlap_slowdown == std::array<double, tiers>{});

  request = named("h100x8*2");
  CHECK(usable_memory(choose_cluster(request).fixed->devices[9]) == driver - Bytes{3'000'000'000});
  request.reserve = Bytes{};
  CHECK(usable_memory(choose_cluster(request).fixed->devices[9]) == driver);
  request.memory = Bytes{50};
  request.reserve = Bytes{20};
  CHECK(usable_memory(choose_cluster(request).fixed->devices[9]) == Bytes{30});
  request.reserve = Bytes{51};
  CHECK(test::complaint<UsageError>([&] { choose_cluster(request); }) ==
        "m0.gpu0: a reserve of 51 B is more than the memory of 50 B; give a smaller --reserve or a "
        "larger --memory");
  request.link = parse_link("1GB/s");
  CHECK(test::complaint<UsageError>([&] { choose_cluster(request); }).find("leave out --link") !=
        std::string::npos);
}

TEST_CASE("the cluster of a priced model and equal devices have a reserve too") {
  ClusterRequest request;
  request.priced_for = "h100";
  CHECK(usable_memory(cluster_of(choose_cluster(request), 2).devices[1]) == Bytes{80'000'000'000});
  request.reserve = Bytes{1'000'000'000};
  CHECK(usable_memory(cluster_of(choose_cluster(request), 2).devices[1]) ==
        driver - Bytes{1'000'000'000});
  request.link = parse_link("10GB/s");
  CHECK(usable_memory(cluster_of(choose_cluster(request), 2).devices[1]) ==
        driver - Bytes{1'000'000'000});
  request.reserve.reset();
  CHECK(usable_memory(cluster_of(choose_cluster(request), 2).devices[1]) == Bytes{80'000'000'000});
  request.groups = true;
  CHECK(usable_memory(cluster_of(choose_cluster(request), 2).devices[1]) ==
        driver - Bytes{3'000'000'000});
  request = {};
  request.memory = Bytes{100};
  request.reserve = Bytes{30};
  CHECK(usable_memory(cluster_of(choose_cluster(request), 3).devices[2]) == Bytes{70});
  request = {};
  request.priced_for = "gb200";
  CHECK(choose_cluster(request).fixed->name == "gb200x72");
}

TEST_CASE("groups on one machine take the driver's memory and the overlap") {
  ClusterRequest request = named("a100x8");
  request.groups = true;
  const Cluster cluster = *choose_cluster(request).fixed;
  CHECK(cluster.devices[0].name == "gpu0");
  CHECK(usable_memory(cluster.devices[0]) == Bytes{(81920LL << 20U) - 3'000'000'000});
  CHECK(cluster.overlap_slowdown == std::array<double, tiers>{0, 0.1, 0, 0.05});
}

TEST_CASE("kinds are known once, those of one machine by the data sheet") {
  const std::vector<DeviceKind> kinds = known_kinds();
  CHECK(kinds.size() == 34);
  CHECK(kinds.front().name == "h100");
  CHECK(kinds.front().memory == Bytes{80'000'000'000});
  CHECK(bundled_kinds(true).front().memory == driver);
}

TEST_CASE("a link that no route takes is named") {
  const auto note = [](const std::string& latency) {
    return choose_cluster(named(R"({"format": "stageline-cluster 1", "name": "two-sockets",
        "devices": [{"name": "gpu", "count": 2}], "switches": ["cpu0", "cpu1", "memory"],
        "links": [{"from": "gpu0", "to": "cpu0", "bandwidth": "32GB/s", "latency": "1us"},
                  {"from": "gpu1", "to": "cpu1", "bandwidth": "32GB/s", "latency": "1us"},
                  {"from": "cpu0", "to": "cpu1", "bandwidth": "1GB/s", "latency": ")" +
                                latency + R"("},
                  {"from": "cpu*", "to": "memory", "bandwidth": "100GB/s", "latency": "0.1us"}]})"))
        .note;
  };
  // By way of the memory: 0.2 µs between the sockets.
  CHECK(note("0.5us") ==
        "no route takes the link cpu0-cpu1: other ways between the same devices have less latency");
  CHECK(
      note("0.1us") ==
      "no route takes 2 links, such as cpu0-memory: other ways between the same devices have less "
      "latency");
  CHECK(choose_cluster(named("h100x8*2")).note.empty());
}

TEST_CASE("a kind of its own is not the next one's, and a machine without one is asked for") {
  ClusterRequest request;
  request.priced_for = "h20";
  CHECK(choose_cluster(request).machine == "h20x8");
  request.priced_for = "l40s";
  const ClusterChoice alone = choose_cluster(request);
  CHECK_FALSE(alone.fixed);
  CHECK(alone.memory == Bytes{46068LL << 20U});
  CHECK(alone.note == "communication is free: no --cluster and no --link was given");
}

}  // namespace
}  // namespace stageline::clusters_tests
