// Is the order of unequal devices that the search finds the best one, and never worse than the
// given?
#include "tools/planner/cuts/device_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/study/uniform.hpp"
#include "tests/thorough.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline::device_order_tests {
namespace {

using test::uniform_case;

// Ports to one switch, and some wires of their own between two devices.
Case random_case(std::mt19937& random, const std::string& schedule, int devices) {
  const auto draw = [&](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  Case asked = uniform_case(schedule, devices, 3 + draw(3));
  for (Layer& layer : asked.model.layers) {
    layer.memory_bound = draw(2) == 0;
    layer.output = Bytes{draw(4) * 200'000};
    layer.forward *= 1 + draw(4);
  }
  asked.cluster.switches = {"switch"};
  for (int d = 0; d < devices; ++d) {
    Device& device = nth(asked.cluster.devices, d);
    device.rate = 0.5 * (1 + draw(3));
    if (draw(2) == 0) device.memory_rate = 0.5 * (1 + draw(3));
    if (draw(2) == 0) device.memory = Bytes{(8 + draw(40)) * std::int64_t{1'000'000}};
    Link link;
    link.name = "port" + std::to_string(d);
    link.from = d;
    link.to = devices;
    link.bandwidth = {(1 + draw(3)) * std::int64_t{1'000'000'000}};
    asked.cluster.links.push_back(link);
  }
  return asked;
}

struct Judged {
  bool runs = false;
  bool fits = false;
  Time step{};
};

Judged judged(const Case& asked) {
  try {
    const Outcome outcome = study(asked);
    return {true, outcome.fit != Fit::no, outcome.step_time};
  } catch (const UsageError&) {
    return {};
  }
}

bool better(const Judged& a, const Judged& b) {
  if (a.runs != b.runs) return a.runs;
  if (a.fits != b.fits) return a.fits;
  return a.step < b.step;
}

TEST_CASE("of all orders of a few devices none is better than the one that is found") {
  std::mt19937 random(7);
  int moved = 0;
  for (int round = 0; round < (test::thorough ? 40 : 10); ++round) {
    const std::vector<std::string> schedules{"1f1b", "gpipe", "interleaved_1f1b", "zb_v",
                                             "pipedream"};
    const int devices = 2 + static_cast<int>(random() % 3);
    const Case asked = random_case(random, schedules[as_size(round) % schedules.size()], devices);
    CAPTURE(round);
    std::vector<int> order(as_size(devices));
    std::iota(order.begin(), order.end(), 0);
    Judged best;
    do {
      Case other = asked;
      other.cluster = planner::in_order(asked.cluster, order);
      const Judged here = judged(other);
      if (better(here, best)) best = here;
    } while (std::next_permutation(order.begin(), order.end()));
    const DeviceOrder found = planner::search_device_order(asked);
    CHECK(found.all());
    Case chosen = asked;
    chosen.cluster = planner::in_order(asked.cluster, found.order);
    const Judged here = judged(chosen);
    CHECK(here.runs == best.runs);
    CHECK(here.fits == best.fits);
    CHECK(here.step == best.step);
    CHECK(found.found == best.step);
    moved += std::is_sorted(found.order.begin(), found.order.end()) ? 0 : 1;
  }
  CHECK(moved > (test::thorough ? 5 : 0));
}

TEST_CASE("a search that is cut short is never worse than the given order, and repeats itself") {
  std::mt19937 random(8);
  for (int round = 0; round < 15; ++round) {
    const Case asked = random_case(random, round % 2 == 0 ? "1f1b" : "zb_h1", 6);
    const int most = 1 + static_cast<int>(random() % 30);
    CAPTURE(round);
    const DeviceOrder found = planner::search_device_order(asked, most);
    CHECK(found.simulated <= most);
    const Judged given = judged(asked);
    Case chosen = asked;
    chosen.cluster = planner::in_order(asked.cluster, found.order);
    CHECK_FALSE(better(given, judged(chosen)));
    CHECK(planner::search_device_order(asked, most).order == found.order);
    const DeviceOrder longer = planner::search_device_order(asked, 4 * most);
    Case other = asked;
    other.cluster = planner::in_order(asked.cluster, longer.order);
    CHECK_FALSE(better(judged(chosen), judged(other)));
  }
}

TEST_CASE("exchanging two devices of one class changes no answer") {
  std::mt19937 random(9);
  int exchanged = 0;
  for (int round = 0; round < 60; ++round) {
    Case asked = random_case(random, "1f1b", 4);
    for (std::size_t d = 1; d < 4; ++d) {
      if (random() % 3 == 0) continue;
      const std::string name = asked.cluster.devices[d].name;
      asked.cluster.devices[d] = asked.cluster.devices[0];
      asked.cluster.devices[d].name = name;
      asked.cluster.links[d].bandwidth = asked.cluster.links[0].bandwidth;
    }
    // A wire of their own, whose ends may be exchanged.
    if (random() % 2 == 0) asked.cluster.links.push_back({"wire", 0, 1, {4'000'000'000}});
    const std::vector<int> classes = planner::device_classes(asked.cluster);
    const Judged given = judged(asked);
    for (int a = 0; a < 4; ++a) {
      for (int b = a + 1; b < 4; ++b) {
        if (nth(classes, a) != nth(classes, b)) continue;
        std::vector<int> order{0, 1, 2, 3};
        std::swap(nth(order, a), nth(order, b));
        Case other = asked;
        other.cluster = planner::in_order(asked.cluster, order);
        CHECK(judged(other).step == given.step);
        ++exchanged;
      }
    }
  }
  CHECK(exchanged > 10);
}

TEST_CASE("devices of one kind are alike only with the same links") {
  Cluster cluster = uniform_cluster(4, std::nullopt, std::nullopt);
  CHECK(planner::device_classes(cluster) == std::vector<int>{0, 0, 0, 0});
  cluster.devices[2].rate = 0.5;
  CHECK(planner::device_classes(cluster) == std::vector<int>{0, 0, 1, 0});
  cluster.links = {{"wire", 0, 3, parse_bandwidth("1GB/s")}};
  CHECK(planner::device_classes(cluster) == std::vector<int>{0, 1, 2, 0});  // the ends of one wire
  cluster.links.push_back({"wire", 0, 1, parse_bandwidth("1GB/s")});
  CHECK(planner::device_classes(cluster) == std::vector<int>{0, 1, 2, 1});
  cluster.links.back().latency_back = parse_time("1us");
  CHECK(planner::device_classes(cluster) == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("devices in another order keep their names, their links and their machines") {
  Cluster cluster = uniform_cluster(3, LinkSpec{parse_bandwidth("1GB/s"), {}}, std::nullopt);
  cluster.devices[2].rate = 3;
  cluster.links.push_back({"wire", 0, 2, parse_bandwidth("9GB/s")});
  const Cluster turned = planner::in_order(cluster, {2, 0, 1});
  CHECK(turned.devices[0].name == "gpu2");
  CHECK(turned.devices[0].rate == 3);
  CHECK(turned.links.back().from == 1);  // gpu0
  CHECK(turned.links.back().to == 0);    // gpu2
  CHECK(network_of(turned).between(0, 1).bandwidth == network_of(cluster).between(2, 0).bandwidth);
  CHECK(planner::in_order(turned, {1, 2, 0}) == cluster);
}

// The first stage of 1F1B holds most stashes.
TEST_CASE("an order that fits goes before a faster one that does not") {
  Case asked = uniform_case("1f1b", 4, 8, parse_bytes("24MB"));
  asked.partition = "uniform";
  asked.cluster.devices[3].memory = parse_bytes("25MB");
  CHECK(study(asked).fit == Fit::no);
  const Case found = planner::with_searched_order(asked);
  REQUIRE(found.device_order);
  CHECK_FALSE(found.device_order->given_fits);
  CHECK(found.cluster.devices[0].name == "gpu3");
}

TEST_CASE("the note on an order says what it gains") {
  Case asked = uniform_case("1f1b", 3, 6);
  asked.model = uniform_model("layers=7,forward=1ms,input_grad=1ms,weight_grad=1ms");
  asked.cluster.devices[1].rate = 0.5;
  const Case found = planner::with_searched_order(asked);
  const std::vector<std::string> notes = stream_notes(found, study(found));
  REQUIRE(!notes.empty());
  CHECK(
      notes.front() ==
      "1f1b: devices in the order gpu0, gpu2, gpu1: 66.00 ms a step, 4.3 % less than the 69.00 ms "
      "in the given order (simulated: all 3 that differ)");
  Case alike = uniform_case("1f1b", 4, 8);
  alike = planner::with_searched_order(alike);
  CHECK(stream_notes(alike, study(alike)).front() ==
        "1f1b: no better order of the devices than the given one was found (the devices are alike: "
        "there is no other)");
}

// Racks of three machines of one device, whose switches a spine joins.
Cluster small_racks(int racks) {
  Cluster cluster;
  cluster.name = "racks";
  cluster.racks = {1, 3};
  const int devices = 3 * racks;
  for (int d = 0; d < devices; ++d) {
    Device device;
    device.name = "gpu" + std::to_string(d);
    cluster.devices.push_back(device);
    cluster.links.push_back(
        {"port" + std::to_string(d), d, devices + d / 3, parse_bandwidth("10GB/s")});
  }
  for (int rack = 0; rack < racks; ++rack) {
    cluster.switches.push_back("rack" + std::to_string(rack));
    cluster.links.push_back({"up" + std::to_string(rack), devices + rack, devices + racks,
                             parse_bandwidth("1GB/s"), parse_time("500us")});
  }
  cluster.switches.emplace_back("spine");
  return cluster;
}

TEST_CASE("placements on racks are searched beside orders, and the better one is what it says") {
  SettingRequest request;
  request.trace = "uniform:layers=8,forward=1ms,output=1MB";
  request.cluster.cluster = write_cluster(small_racks(4));
  request.devices = {8};  // two of each rack, or 3, 3 and 2
  request.microbatches = 8;
  request.device_order = DeviceOrdering::search;
  const auto found = [&] {
    const Setting setting = read_setting(request);
    return planner::searched_case(request, setting, parse_schedules("1f1b").front(), 8);
  };
  const Case best = found();
  REQUIRE(best.device_order);
  CHECK(best.device_order->placement == "fill");
  REQUIRE(best.device_order->elsewhere);
  const Outcome outcome = study(best);
  CHECK(outcome.step_time == best.device_order->found);
  CHECK(*best.device_order->elsewhere > best.device_order->found);
  CHECK(
      stream_notes(best, outcome)
          .front()
          .find("; on the devices of --placement fill, the best order on those of segment takes " +
                print(*best.device_order->elsewhere)) != std::string::npos);
  const std::vector<std::string> told = read_setting(request).notes;
  for (const char* const note :
       {"--placement segment: 8 devices on 4 racks, 2 of each one's 3",
        "--placement fill: 8 devices on 3 racks of 3, each filled before the next"}) {
    CHECK(std::any_of(told.begin(), told.end(),
                      [&](const std::string& one) { return one.rfind(note, 0) == 0; }));
  }
  // Each by itself, as it is asked for.
  request.cluster.placement = "fill";
  CHECK(found().device_order->placement.empty());
  CHECK(found().device_order->found == best.device_order->found);
  request.cluster.placement = "segment";
  CHECK(found().device_order->found == *best.device_order->elsewhere);
}

TEST_CASE("a program says itself which device does what") {
  Case asked = uniform_case("1f1b", 2, 4);
  asked.program = study(asked).program;
  CHECK_THROWS_WITH_AS(planner::with_searched_order(asked),
                       "--device-order search is for schedules: a given program says itself which "
                       "device does what",
                       UsageError);
}

// Machines of two devices, each with a switch of its own, on one fabric.
Cluster machines_of_two(const std::vector<double>& rates) {
  Cluster cluster;
  cluster.name = "machines";
  const int machines = static_cast<int>(rates.size());
  for (int m = 0; m < machines; ++m) {
    cluster.hosts.push_back({"host" + std::to_string(m), std::nullopt, false});
    cluster.switches.push_back("switch" + std::to_string(m));
    for (int g = 0; g < 2; ++g) {
      Device device;
      device.name = "gpu" + std::to_string(2 * m + g);
      device.rate = nth(rates, m);
      device.host = m;
      cluster.devices.push_back(device);
    }
  }
  cluster.switches.emplace_back("fabric");
  const Bandwidth bandwidth{10'000'000'000};
  for (int m = 0; m < machines; ++m) {
    const int own = 3 * machines + m;
    for (const int device : {2 * m, 2 * m + 1}) {
      cluster.links.push_back({"port", device, own, bandwidth, Time{}, Duplex::full});
    }
    cluster.links.push_back({"nic", own, 4 * machines, bandwidth, Time{}, Duplex::full});
  }
  return cluster;
}

Case ranked_case(const Cluster& cluster, int tensor, int data, int pipeline) {
  Degrees degrees;
  degrees.tensor = tensor;
  degrees.data = data;
  degrees.pipeline = pipeline;
  Case asked = uniform_case("1f1b", pipeline, 8);
  asked.model = uniform_model("layers=6,forward=1ms,input_grad=1ms,weight_grad=1ms");
  asked.model.layers[0].forward *= 5;
  asked.ranked = std::make_shared<RankedCluster>(cluster, degrees);
  asked.cluster = asked.ranked->ranks();
  asked.sharing = Sharing::fair;
  return asked;
}

TEST_CASE("with degrees machines are permuted, and the best of all orders is found") {
  const std::vector<double> rates{0.5, 1, 0.5};
  const Case asked = ranked_case(machines_of_two(rates), 2, 1, 3);
  CHECK(planner::unit_classes(asked.ranked->devices(), planner::ordered_units(asked)) ==
        std::vector<int>{0, 1, 0});
  const DeviceOrder found = planner::search_device_order(asked);
  CHECK(found.machines);
  CHECK(found.orders == 3);
  CHECK(found.all());
  Time best = Time::max();
  for (const std::vector<double>& order :
       {std::vector<double>{0.5, 1, 0.5}, {1, 0.5, 0.5}, {0.5, 0.5, 1}}) {
    best = std::min(best, study(ranked_case(machines_of_two(order), 2, 1, 3)).step_time);
  }
  CHECK(found.found == best);
  CHECK(found.names == std::vector<std::string>{"host1", "host0", "host2"});
  const Case chosen = planner::with_searched_order(asked);
  CHECK(study(chosen).step_time == best);
  CHECK(chosen.cluster.devices[0].rate == 1);
  CHECK(stream_notes(chosen, study(chosen))
            .front()
            .starts_with("1f1b: machines in the order host1, host0, host2: "));
}

TEST_CASE("replicas that differ in the given order may be alike in another") {
  // Ranks of replica d are on machines d and d + 2.
  const Case asked = ranked_case(machines_of_two({1, 1, 0.5, 1}), 2, 2, 2);
  CHECK(asked.pipelines() == 2);
  const Case slow_together = ranked_case(machines_of_two({0.5, 0.5, 1, 1}), 2, 2, 2);
  CHECK(slow_together.pipelines() == 1);
  const Case mixed = ranked_case(machines_of_two({0.5, 1, 1, 0.5}), 2, 2, 2);
  CHECK(mixed.pipelines() == 2);
  const Case chosen = planner::with_searched_order(mixed);
  CHECK(study(chosen).step_time <= study(slow_together).step_time);
  CHECK(chosen.device_order->orders == 6);
}

TEST_CASE("machines with other links or hosts are of classes of their own") {
  Cluster cluster = machines_of_two({1, 1, 1});
  const auto classes = [&](const Cluster& of) {
    const Case asked = ranked_case(of, 2, 1, 3);
    return planner::unit_classes(asked.ranked->devices(), planner::ordered_units(asked));
  };
  CHECK(classes(cluster) == std::vector<int>{0, 0, 0});
  Cluster slow = cluster;
  slow.links[2].bandwidth = {1'000'000'000};  // the first machine's NIC
  CHECK(classes(slow) == std::vector<int>{0, 1, 1});
  Cluster large = cluster;
  large.hosts[1].memory = Bytes{1};
  CHECK(classes(large) == std::vector<int>{0, 1, 0});
}

}  // namespace
}  // namespace stageline::device_order_tests
