// Are cuts best on devices of unequal rates by class, and over links of unequal bandwidth?
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "schedulers/partition/boundaries.hpp"
#include "schedulers/partition/cuts.hpp"
#include "schedulers/partition/device_loads.hpp"
#include "schedulers/partition/partitioner.hpp"
#include "schedulers/partition/pipedream.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/partition/models.hpp"

namespace stageline::unequal_tests {
namespace {

using testing::all_cuts;
using testing::chain;
using testing::draw;

using Placed = std::vector<std::vector<int>>;

// Some layers bound by memory.
Model classed_model(std::mt19937& random, int layers, bool branches) {
  Model model = testing::random_model(random, layers, branches);
  for (Layer& layer : model.layers) {
    layer.forward *= 7;
    layer.backward *= 7;
    layer.memory_bound = draw(random, 2) == 0;
  }
  return model;
}

// Devices with ports of their own on one switch.
struct Machine {
  Cluster cluster;
  std::vector<std::int64_t> port;  // bytes/s
};

Machine random_machine(std::mt19937& random, int devices, bool unequal_ports) {
  Machine machine{testing::devices(devices), {}};
  machine.cluster.switches = {"switch"};
  for (int d = 0; d < devices; ++d) {
    Device& device = nth(machine.cluster.devices, d);
    device.rate = 0.25 * (1 + draw(random, 8));
    if (draw(random, 4) != 0) device.memory_rate = 0.25 * (1 + draw(random, 8));
    machine.port.push_back((unequal_ports ? 1 + draw(random, 6) : 3) * 10'000'000'000'000);
    Link link;
    link.name = "port" + std::to_string(d);
    link.from = d;
    link.to = devices;
    link.bandwidth = {machine.port.back()};
    machine.cluster.links.push_back(link);
  }
  return machine;
}

std::int64_t time_on(const Device& device, double replicas, std::int64_t all, std::int64_t memory) {
  const double rate = device.rate * replicas;
  const double memory_rate = (device.memory_rate > 0 ? device.memory_rate : device.rate) * replicas;
  if (rate == memory_rate) return std::llround(static_cast<double>(all) / rate);
  return std::llround(static_cast<double>(all - memory) / rate +
                      static_cast<double>(memory) / memory_rate);
}

std::int64_t picoseconds_of(std::int64_t bytes, std::int64_t rate) {
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>((static_cast<Wide>(bytes) * 1'000'000'000'000 + rate / 2) /
                                   rate);
}

// By the definitions, with nothing of the partitioner's: the slowest stage or boundary, and then
// the bytes, or where boundaries weigh the times of what stages receive.
struct Quality {
  std::int64_t slowest = 0;
  std::int64_t moves = 0;
  friend auto operator<=>(const Quality&, const Quality&) = default;
};

Quality quality_of(const std::vector<int>& stage_of, int stages, const Model& model,
                   const Machine& machine, const Placed& placed, bool replicas) {
  std::vector<std::int64_t> all(as_size(stages));
  std::vector<std::int64_t> memory(all.size());
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    const std::int64_t time = (layer.forward + layer.backward).count();
    nth(all, stage_of[l]) += time;
    if (layer.memory_bound) nth(memory, stage_of[l]) += time;
  }
  Quality quality;
  for (std::size_t s = 0; s < all.size(); ++s) {
    for (const int device : placed[s]) {
      quality.slowest =
          std::max(quality.slowest, time_on(nth(machine.cluster.devices, device),
                                            replicas ? static_cast<double>(placed[s].size()) : 1,
                                            all[s], memory[s]));
    }
  }
  std::vector<std::int64_t> into(all.size());  // bytes/s; 0: does not wait
  std::set<std::int64_t> routes;
  for (std::size_t s = 1; s < all.size(); ++s) {
    if (placed[s - 1].front() == placed[s].front()) continue;
    std::int64_t narrowest = std::numeric_limits<std::int64_t>::max();
    for (const int device : placed[s - 1]) {
      narrowest = std::min(narrowest, nth(machine.port, device));
    }
    for (const int device : placed[s]) narrowest = std::min(narrowest, nth(machine.port, device));
    routes.insert(narrowest);
    into[s] =
        narrowest * static_cast<std::int64_t>(std::min(placed[s - 1].size(), placed[s].size()));
  }
  const bool weigh = routes.size() > 1;
  std::set<std::pair<int, int>> received;  // (layer, stage)
  std::vector<std::set<int>> crossing(all.size());
  for (const LayerEdge& edge : edges_of(model)) {
    const int to = nth(stage_of, edge.to);
    if (nth(stage_of, edge.from) == to) continue;
    received.insert({edge.from, to});
    for (int s = nth(stage_of, edge.from) + 1; s <= to; ++s) nth(crossing, s).insert(edge.from);
  }
  std::vector<std::int64_t> bytes(all.size());
  for (const auto& pair : received)
    nth(bytes, pair.second) += nth(model.layers, pair.first).output.count;
  for (std::size_t s = 1; s < all.size(); ++s) {
    if (!weigh) {
      quality.moves += bytes[s];
    } else if (into[s] > 0) {
      quality.moves += picoseconds_of(bytes[s], into[s]);
      std::int64_t across = 0;
      for (const int layer : crossing[s]) across += nth(model.layers, layer).output.count;
      quality.slowest = std::max(quality.slowest, picoseconds_of(across, into[s]));
    }
  }
  return quality;
}

void compare_with_all_cuts(unsigned seed, bool branches, bool unequal_ports,
                           const std::function<Placed(std::mt19937&)>& place,
                           bool replicas = false) {
  std::mt19937 random(seed);
  int weighed = 0;
  for (int round = 0; round < 150; ++round) {
    const Placed placed = place(random);
    const int stages = static_cast<int>(placed.size());
    const int layers = stages + draw(random, 11 - stages);
    int devices = 0;
    std::vector<int> counts;
    for (const std::vector<int>& own : placed) {
      counts.push_back(static_cast<int>(own.size()));
      devices = std::max(devices, 1 + *std::max_element(own.begin(), own.end()));
    }
    const Model model = classed_model(random, layers, branches);
    const Machine machine = random_machine(random, devices, unequal_ports);
    PartitionRequest request{model, machine.cluster, stages, false, ""};
    if (replicas) {
      request.replicas = counts;
    } else {
      request.placed = placed;
    }
    Quality best{INT64_MAX, INT64_MAX};
    for (const std::vector<int>& cut : all_cuts(layers, stages)) {
      best = std::min(best, quality_of(partition_from_cuts(cut, layers).stage_of, stages, model,
                                       machine, placed, replicas));
    }
    const PartitionPlan plan = partition("balanced", request);
    const Quality found =
        quality_of(plan.partition.stage_of, stages, model, machine, placed, replicas);
    CAPTURE(round);
    CAPTURE(stages);
    CHECK(found.slowest == best.slowest);
    CHECK(found.moves == best.moves);
    weighed += boundaries_of(request).longest() > 0 ? 1 : 0;
  }
  CHECK((weighed > 20) == unequal_ports);
}

Placed straight(std::mt19937& random) {
  Placed placed;
  for (int s = 0, stages = 2 + draw(random, 5); s < stages; ++s) placed.push_back({s});
  return placed;
}
Placed v_shape(std::mt19937& random) {
  const int devices = 2 + draw(random, 2);
  Placed placed;
  for (int s = 0; s < 2 * devices; ++s) placed.push_back({s < devices ? s : 2 * devices - 1 - s});
  return placed;
}
Placed loop(std::mt19937& random) {
  const int devices = 2 + draw(random, 2);
  Placed placed;
  for (int s = 0; s < 2 * devices; ++s) placed.push_back({s % devices});
  return placed;
}
Placed replicated(std::mt19937& random) {
  Placed placed;
  int device = 0;
  for (int s = 0, stages = 2 + draw(random, 3); s < stages; ++s) {
    placed.emplace_back();
    for (int count = 1 + draw(random, 3); count > 0; --count) placed.back().push_back(device++);
  }
  return placed;
}

TEST_CASE("no cut is faster than the balanced one on devices of unequal rates by class") {
  compare_with_all_cuts(1, false, false, straight);
  compare_with_all_cuts(2, true, false, straight);
}

TEST_CASE("the same holds over links of unequal bandwidth, whose transfers count") {
  compare_with_all_cuts(3, false, true, straight);
  compare_with_all_cuts(4, true, true, straight);
}

TEST_CASE("the same holds where devices hold several stages, in loops and in V shapes") {
  compare_with_all_cuts(5, false, true, v_shape);
  compare_with_all_cuts(6, true, true, loop);
  compare_with_all_cuts(7, false, false, v_shape);
}

TEST_CASE("the same holds where stages have unequal replicas, which take turns") {
  compare_with_all_cuts(8, false, true, replicated, true);
  compare_with_all_cuts(9, false, false, replicated, true);
}

TEST_CASE("a device with slow memory gets the layers that compute") {
  Model model = chain({2, 2, 2, 2, 2, 2});
  for (const std::size_t layer : {0U, 1U, 2U}) model.layers[layer].memory_bound = true;
  Cluster cluster = testing::devices(2);
  const auto cut = [&] {
    return print(partition("balanced", {model, cluster, 2, false, ""}).partition);
  };
  cluster.devices[0].memory_rate = 0.5;
  CHECK(cut() == "0-1 | 2-5");  // 8 ms each
  std::swap(cluster.devices[0], cluster.devices[1]);
  CHECK(cut() == "0-2 | 3-5");  // slow memory does not matter there
  cluster.devices[1].memory_rate = cluster.devices[1].rate = 0.5;
  CHECK(cut() == "0-3 | 4-5");
}

TEST_CASE("a narrow link keeps a large tensor away from it") {
  const Model model = chain({2, 2, 2, 2, 2, 2}, {1'000'000, 1'000'000, 1'000'000, 9'000'000});
  Cluster cluster = testing::devices(3);
  cluster.links = {{"wide", 0, 1, parse_bandwidth("1GB/s")},
                   {"narrow", 1, 2, parse_bandwidth("1GB/s")},
                   {"way", 0, 2, parse_bandwidth("1GB/s")}};
  const auto cut = [&] {
    return print(partition("balanced", {model, cluster, 3, false, ""}).partition);
  };
  CHECK(cut() == "0-1 | 2-3 | 4-5");
  cluster.links[0].bandwidth = parse_bandwidth("4GB/s");
  cluster.links[2].bandwidth = parse_bandwidth("4GB/s");
  // 9 ms over the narrow link behind layer 3: longer than any stage of the cut 0-1 | 2 | 3-5
  CHECK(cut() == "0-1 | 2 | 3-5");
}

TEST_CASE("links are alike where every device has the same, whatever else the cluster has") {
  Cluster cluster = uniform_cluster(4, LinkSpec{parse_bandwidth("1GB/s"), parse_time("1us")}, {},
                                    LinkSpec{parse_bandwidth("2GB/s"), {}});
  CHECK(links_are_alike(cluster));
  cluster.links.front().bandwidth = parse_bandwidth("3GB/s");
  CHECK_FALSE(links_are_alike(cluster));
}

TEST_CASE("loads of devices with several stages go by class, too") {
  std::mt19937 random(10);
  for (int round = 0; round < 60; ++round) {
    const Placed placed = v_shape(random);
    const int stages = static_cast<int>(placed.size());
    const Model model = classed_model(random, stages + 5, false);
    const Machine machine = random_machine(random, stages / 2, false);
    PartitionRequest request{model, machine.cluster, stages, false, ""};
    request.placed = placed;
    const PartitionPlan plan = partition("by_device", request);
    std::vector<double> load(machine.cluster.devices.size());
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      const int device = nth(placed, plan.partition.stage_of[l]).front();
      const Device& on = nth(machine.cluster.devices, device);
      const Layer& layer = model.layers[l];
      const double rate = layer.memory_bound && on.memory_rate > 0 ? on.memory_rate : on.rate;
      nth(load, device) += static_cast<double>((layer.forward + layer.backward).count()) / rate;
    }
    const std::vector<double> found = device_loads(request, last_layers_of(plan.partition));
    for (std::size_t d = 0; d < load.size(); ++d) CHECK(found[d] == doctest::Approx(load[d]));
  }
}

// The bottleneck of a plan by the definitions of pipedream.hpp; `question` with rates.
std::int64_t bottleneck_of(const PipedreamQuestion& question, const std::vector<int>& last_layers,
                           const std::vector<int>& counts) {
  const std::size_t devices = question.rates.size();
  const auto bandwidth = [&](std::size_t from, std::size_t from_end, std::size_t to,
                             std::size_t to_end) {
    Bandwidth narrowest = Bandwidth::unlimited();
    for (std::size_t a = from; a < from_end; ++a) {
      for (std::size_t b = to; b < to_end; ++b) {
        if (a != b) narrowest = std::min(narrowest, question.between[a * devices + b]);
      }
    }
    return narrowest;
  };
  std::int64_t slowest = 0;
  std::size_t layer = 0;
  std::size_t device = 0;
  std::size_t before = 0;  // first device of the stage before
  for (std::size_t s = 0; s < counts.size(); ++s) {
    const std::size_t end =
        s + 1 < counts.size() ? as_size(last_layers[s]) + 1 : question.time.size();
    const std::size_t device_end = device + as_size(counts[s]);
    const std::int64_t k = counts[s];
    if (s > 0 && question.transfers) {
      const Bandwidth route = bandwidth(before, device, device, device_end);
      slowest =
          std::max(slowest, transfer_time(question.crossing[layer - 1] * 2, route).count() / k);
    }
    std::int64_t all = 0;
    std::int64_t memory = 0;
    Bytes weights_before;
    for (std::size_t l = 0; l < layer; ++l) weights_before += question.weights[l];
    Bytes weights = weights_before;
    for (std::size_t l = layer; l < end; ++l) {
      all += question.time[l].count();
      if (question.memory_bound[l]) memory += question.time[l].count();
      weights += question.weights[l];
    }
    std::int64_t compute = 0;
    for (std::size_t d = device; d < device_end; ++d) {
      const Device on{"", -1, {}, question.rates[d].matrix, -1, {}, question.rates[d].memory};
      compute = std::max(compute, time_on(on, 1, all, memory));
    }
    std::int64_t stage = compute;
    if (k > 1) {
      const Bandwidth inside = bandwidth(device, device_end, device, device_end);
      const std::int64_t reduce = transfer_time(weights * 4, inside).count() -
                                  transfer_time(weights_before * 4, inside).count();
      const std::int64_t sync = reduce * (k - 1);
      stage = (question.cost == PipedreamCost::code ? compute * k + sync
                                                    : std::max(compute * k, sync)) /
              (k * k);
    }
    slowest = std::max(slowest, stage);
    layer = end;
    before = device;
    device = device_end;
  }
  return slowest;
}

// All ways to give `devices` devices to stages.
std::vector<std::vector<int>> all_counts(int devices) {
  std::vector<std::vector<int>> all;
  for (const int stages : {1, 2, 3, 4, 5}) {
    if (stages > devices) break;
    for (const std::vector<int>& cut : all_cuts(devices, stages)) {
      std::vector<int> counts;
      int first = 0;
      for (const int last : cut) {
        counts.push_back(last + 1 - first);
        first = last + 1;
      }
      counts.push_back(devices - first);
      all.push_back(counts);
    }
  }
  return all;
}

PipedreamQuestion random_question(std::mt19937& random, int layers, int devices) {
  const Model model = classed_model(random, layers, draw(random, 2) == 0);
  PipedreamQuestion question = testing::question_of(model, devices, "10TB/s");
  for (const Layer& layer : model.layers) question.memory_bound.push_back(layer.memory_bound);
  const Machine machine = random_machine(random, devices, true);
  for (int d = 0; d < devices; ++d) {
    question.rates.push_back(rates_of(nth(machine.cluster.devices, d)));
    for (int other = 0; other < devices; ++other) {
      const std::int64_t port = std::min(nth(machine.port, d), nth(machine.port, other));
      question.between.push_back(d == other ? Bandwidth::unlimited() : Bandwidth{port});
    }
  }
  question.cost = draw(random, 2) == 0 ? PipedreamCost::code : PipedreamCost::paper;
  question.transfers = draw(random, 4) != 0;
  return question;
}

std::int64_t best_bottleneck(const PipedreamQuestion& question,
                             const std::vector<std::vector<int>>& counts) {
  const int layers = static_cast<int>(question.time.size());
  std::int64_t best = INT64_MAX;
  for (const std::vector<int>& one : counts) {
    for (const std::vector<int>& cut : all_cuts(layers, static_cast<int>(one.size()))) {
      best = std::min(best, bottleneck_of(question, cut, one));
    }
  }
  return best;
}

void check_pipedream(const PipedreamQuestion& question,
                     const std::vector<std::vector<int>>& counts) {
  const PipedreamPlan plan = pipedream_plan(question);
  std::vector<int> last_layers;
  std::vector<int> own;
  int device = 0;
  for (const PipedreamStage& stage : plan.stages) {
    last_layers.push_back(stage.last);
    own.push_back(static_cast<int>(stage.devices.size()));
    for (const int one : stage.devices) CHECK(one == device++);
  }
  CHECK(std::find(counts.begin(), counts.end(), own) != counts.end());
  CHECK(plan.bottleneck.count() == bottleneck_of(question, last_layers, own));
  CHECK(plan.bottleneck.count() == best_bottleneck(question, counts));
}

TEST_CASE(
    "no plan is faster than PipeDream's on unequal devices and links, replicated as it pays") {
  std::mt19937 random(11);
  for (int round = 0; round < 120; ++round) {
    CAPTURE(round);
    const int devices = 1 + draw(random, 5);
    const PipedreamQuestion question = random_question(random, 1 + draw(random, 7), devices);
    check_pipedream(question, all_counts(devices));
  }
}

TEST_CASE("nor where each stage has one device, or the replicas are given") {
  std::mt19937 random(12);
  for (int round = 0; round < 120; ++round) {
    CAPTURE(round);
    const int devices = 1 + draw(random, 5);
    PipedreamQuestion question = random_question(random, devices + draw(random, 4), devices);
    if (round % 2 == 0) {
      question.replicate = false;
      check_pipedream(question, {std::vector<int>(as_size(devices), 1)});
    } else {
      const std::vector<std::vector<int>> counts = all_counts(devices);
      question.replicas = nth(counts, draw(random, static_cast<int>(counts.size())));
      check_pipedream(question, {question.replicas});
    }
  }
}

TEST_CASE("equal devices and routes make PipeDream's own plan") {
  std::mt19937 random(13);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const int devices = 1 + draw(random, 6);
    PipedreamQuestion question = random_question(random, devices + draw(random, 6), devices);
    question.replicate = round % 3 != 0;
    question.between.clear();
    question.rates.assign(as_size(devices), Rates{});
    const PipedreamPlan found = pipedream_plan(question);
    question.rates.clear();
    const PipedreamPlan plain = pipedream_plan(question);
    CHECK(found.bottleneck == plain.bottleneck);
    CHECK(found.single == plain.single);
  }
}

TEST_CASE("PipeDream's plan gives the slow device fewer layers, whatever the placement") {
  const Model model = chain(std::vector<int>(12, 1));
  Cluster cluster = testing::devices(2);
  cluster.devices[1].rate = 0.5;
  PartitionRequest request{model, cluster, 2, false, ""};
  CHECK(print(partition("pipedream", request).partition) == "0-7 | 8-11");
  request.stages = 4;
  request.placed = {{0}, {1}, {1}, {0}};
  CHECK(print(partition("pipedream", request).partition) == "0-3 | 4-5 | 6-7 | 8-11");
  request.placed = {{0}, {1}, {0}, {1}};
  CHECK(print(partition("pipedream", request).partition) == "0-3 | 4-5 | 6-9 | 10-11");
  const PartitionPlan plan = partition("pipedream", {model, cluster, 1, true, ""});
  CHECK(plan.replicas == std::vector<int>{1, 1});
  CHECK(plan.reason ==
        "plan straight, 2 stages, slowest stage 8.000 ms a minibatch, 1.50× one device");
}

TEST_CASE("levels of machines take all devices as equally fast, and say so") {
  const Model model = chain(std::vector<int>(12, 1));
  Cluster cluster = testing::devices(4);
  cluster.devices[1].rate = 0.5;
  CHECK_THROWS_WITH_AS(
      partition("pipedream:levels=2@1GB/s,2@1GB/s", {model, cluster, 1, true, ""}),
      "pipedream: levels= takes all devices as equally fast, but gpu0 has rate 1 and others do "
      "not; leave levels= out, then the plan weighs each device's rates and routes",
      UsageError);
}

}  // namespace
}  // namespace stageline::unequal_tests
