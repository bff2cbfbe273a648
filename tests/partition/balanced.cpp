// Is the balanced cut the best one?
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "schedulers/partition/partitioner.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/partition/models.hpp"

namespace stageline::balanced_tests {

using namespace stageline::testing;

namespace {

struct Quality {
  std::int64_t slowest = 0;  // ps
  std::int64_t bytes = 0;    // moved between stages
};

bool better(const Quality& a, const Quality& b) {
  return a.slowest != b.slowest ? a.slowest < b.slowest : a.bytes < b.bytes;
}

// By the definitions, with nothing of the partitioner's. `replicas`, `apart` as in
// PartitionRequest.
Quality quality_of(const Partition& partition, const Model& model, const Cluster& cluster,
                   const std::vector<int>& replicas = {}, const std::vector<bool>& apart = {}) {
  std::vector<std::int64_t> time(as_size(partition.stages));
  std::vector<std::int64_t> forward(time.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto stage = as_size(partition.stage_of[i]);
    forward[stage] += model.layers[i].forward.count();
    time[stage] += (model.layers[i].forward + model.layers[i].backward).count();
  }
  for (std::size_t s = 0; s < apart.size(); ++s) {
    if (apart[s]) time[s] = std::max(forward[s], time[s] - forward[s]);
  }
  Quality quality;
  std::size_t device = 0;  // the next one
  for (std::size_t s = 0; s < time.size(); ++s) {
    const int count = replicas.empty() ? 1 : replicas[s];
    double slowest = 8;  // of the replicas, which take turns
    for (int i = 0; i < count; ++i) {
      slowest = std::min(slowest, cluster.devices[device++ % cluster.devices.size()].rate);
    }
    const double rate = slowest * count;
    quality.slowest =
        std::max<std::int64_t>(quality.slowest, std::llround(static_cast<double>(time[s]) / rate));
  }
  std::set<std::pair<int, int>> received;  // (layer, stage)
  for (const LayerEdge& edge : edges_of(model)) {
    const int from = nth(partition.stage_of, edge.from);
    const int to = nth(partition.stage_of, edge.to);
    if (from != to) received.insert({edge.from, to});
  }
  for (const auto& pair : received) {
    quality.bytes += nth(model.layers, pair.first).output.count;
  }
  return quality;
}

Quality best_of_all(const Model& model, int stages, const Cluster& cluster,
                    const std::vector<int>& replicas, const std::vector<bool>& apart) {
  const int layers = static_cast<int>(model.layers.size());
  Quality best{INT64_MAX, INT64_MAX};
  for (const std::vector<int>& cut : all_cuts(layers, stages)) {
    const Quality here =
        quality_of(partition_from_cuts(cut, layers), model, cluster, replicas, apart);
    if (better(here, best)) best = here;
  }
  return best;
}

void compare_with_all_cuts(unsigned seed, bool branches, bool equal_devices,
                           bool replicated = false, bool roles_apart = false) {
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    const int layers = 1 + draw(random, 10);
    const int stages = 1 + draw(random, layers);
    const Model model = random_model(random, layers, branches);
    std::vector<int> replicas;
    while (replicated && static_cast<int>(replicas.size()) < stages) {
      replicas.push_back(1 + draw(random, 4));
    }
    Cluster cluster =
        devices(replicated ? std::accumulate(replicas.begin(), replicas.end(), 0) : stages);
    for (Device& device : cluster.devices) {
      if (!equal_devices) device.rate = 0.25 * (1 + draw(random, 8));
    }
    CAPTURE(round);
    CAPTURE(layers);
    CAPTURE(stages);
    std::vector<bool> apart;
    while (roles_apart && static_cast<int>(apart.size()) < stages) {
      apart.push_back(draw(random, 2) == 0);
    }
    const PartitionRequest request{model, cluster, stages, false, "", replicas, apart};
    const PartitionPlan plan = partition("balanced", request);
    CHECK_NOTHROW(check(plan.partition, model));
    CHECK(plan.replicas == (replicated ? replicas : std::vector<int>(as_size(stages), 1)));
    const Quality found = quality_of(plan.partition, model, cluster, replicas, apart);
    const Quality best = best_of_all(model, stages, cluster, replicas, apart);
    CHECK(found.slowest == best.slowest);
    CHECK(found.bytes == best.bytes);
    CHECK(partition("balanced", request).partition == plan.partition);
  }
}

std::string cut(const char* name, const Model& model, int stages) {
  const Cluster cluster = devices(stages);
  return print(partition(name, {model, cluster, stages, false, ""}).partition);
}

}  // namespace

TEST_CASE("no cut of a chain is faster than the balanced one, and of the fastest none moves less") {
  compare_with_all_cuts(1, false, true);
}

TEST_CASE("the same holds on branching graphs, where a tensor counts once a stage that reads it") {
  compare_with_all_cuts(2, true, true);
}

TEST_CASE("the same holds on devices of different speed") {
  compare_with_all_cuts(3, false, false);
  compare_with_all_cuts(4, true, false);
}

TEST_CASE("the same holds where stages have replicas, equally fast or not") {
  compare_with_all_cuts(6, false, true, true);
  compare_with_all_cuts(7, true, false, true);
}

TEST_CASE("the same holds where some stages have forward and backward on two devices") {
  compare_with_all_cuts(8, false, true, false, true);
  compare_with_all_cuts(9, true, false, false, true);
}

TEST_CASE("a stage of three devices gets three times the layers") {
  const Model model = chain(std::vector<int>(8, 3));
  Cluster cluster = devices(4);
  PartitionRequest request{model, cluster, 2, false, "", {3, 1}};
  PartitionPlan plan = partition("balanced", request);
  CHECK(print(plan.partition) == "0-5 | 6-7");
  CHECK(plan.replicas == std::vector<int>{3, 1});
  CHECK(plan.reason ==
        "largest stage 6.000 ms a micro-batch, 0.0 % over the mean; 0 B a micro-batch between "
        "stages");
  request.replicas = {1, 3};
  CHECK(print(partition("balanced", request).partition) == "0-1 | 2-7");
  // devices are counted in order: the slow ones are the second stage's
  request.replicas = {2, 2};
  for (const std::size_t slow : {2U, 3U}) cluster.devices[slow].rate = 1.0 / 3;
  CHECK(print(partition("balanced", request).partition) == "0-5 | 6-7");
}

TEST_CASE("of equally fast cuts one that moves fewer bytes goes before a more even one") {
  CHECK(cut("balanced", chain({1, 1, 1, 1, 4}, {9, 9, 9, 9}), 3) == "0-1 | 2-3 | 4");
  CHECK(cut("balanced", chain({1, 1, 1, 1, 4}, {9, 9, 1, 9}), 3) == "0-2 | 3 | 4");
}

TEST_CASE("equal layers that do not divide are spread evenly") {
  CHECK(cut("balanced", chain(std::vector<int>(12, 7)), 5) == "0-2 | 3-5 | 6-7 | 8-9 | 10-11");
  CHECK(cut("uniform", chain(std::vector<int>(12, 7)), 5) == "0-2 | 3-5 | 6-7 | 8-9 | 10-11");
}

TEST_CASE("uniform counts layers and does not look at their times") {
  CHECK(cut("uniform", chain({90, 1, 1, 1, 1, 1, 1}), 3) == "0-2 | 3-4 | 5-6");
  CHECK(cut("uniform", chain({90, 1, 1, 1, 1, 1}), 3) == "0-1 | 2-3 | 4-5");
  CHECK(cut("uniform", chain({1, 2, 3}), 3) == "0 | 1 | 2");
}

TEST_CASE("a device of half the speed gets half the layers") {
  Cluster cluster = devices(2);
  cluster.devices[1].rate = 0.5;
  const Model model = chain(std::vector<int>(9, 1));
  const PartitionPlan plan = partition("balanced", {model, cluster, 2, false, ""});
  CHECK(print(plan.partition) == "0-5 | 6-8");
  CHECK(plan.reason ==
        "largest stage 6.000 ms, 0.0 % over the mean; 0 B a micro-batch between stages");
}

TEST_CASE("the reason names the largest stage, the mean and the bytes that move") {
  const Model model = chain({3, 3, 2}, {1000, 2000});
  const Cluster cluster = devices(2);
  CHECK(partition("balanced", {model, cluster, 2, false, ""}).reason ==
        "largest stage 5.000 ms, 25.0 % over the mean; 1.000 kB a micro-batch between stages");
  CHECK(partition("uniform", {model, cluster, 2, false, ""}).reason ==
        "2 or 1 layers a stage; largest stage 6.000 ms, 50.0 % over the mean; 2.000 kB a "
        "micro-batch between stages");
}

TEST_CASE("a hundred thousand layers are cut at once, or refused where too many cuts are as fast") {
  constexpr int layers = 100'000;
  std::mt19937 random(7);
  Model model = random_model(random, layers, false);
  const Cluster cluster = devices(64);
  const Partition found = partition("balanced", {model, cluster, 64, false, ""}).partition;
  const Quality quality = quality_of(found, model, cluster);
  Time longest{};
  Time all{};
  for (const Layer& layer : model.layers) {
    longest = std::max(longest, layer.forward + layer.backward);
    all += layer.forward + layer.backward;
  }
  CHECK(quality.slowest < all.count() / 64 + longest.count());  // as first fit promises
  model.layers[layers / 2].forward = all;
  CHECK_THROWS_WITH_AS(partition("balanced", {model, cluster, 64, false, ""}),
                       doctest::Contains("100000 layers in 64 stages leave more than 2000000000 "
                                         "equally fast stages to choose from"),
                       UsageError);
}

TEST_CASE("a thousand layers over 128 stages: one picosecond less needs another stage") {
  std::mt19937 random(5);
  const Model model = random_model(random, 1000, false);
  const Cluster cluster = devices(128);
  const PartitionPlan plan = partition("balanced", {model, cluster, 128, false, ""});
  const Quality found = quality_of(plan.partition, model, cluster);
  int stages = 1;
  std::int64_t held = 0;
  for (const Layer& layer : model.layers) {
    const std::int64_t time = (layer.forward + layer.backward).count();
    REQUIRE(time < found.slowest);
    if (held + time >= found.slowest) {
      ++stages;
      held = 0;
    }
    held += time;
  }
  CHECK(stages > 128);
}

TEST_CASE("more stages than layers is refused with both numbers") {
  const Model model = chain({1, 1, 1});
  const Cluster cluster = devices(4);
  for (const char* name : {"balanced", "uniform", "pipedream:replicate=no"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH_AS(
        partition(name, {model, cluster, 4, false, ""}),
        "4 stages need at least 4 layers, but the model \"chain\" has 3; use fewer "
        "devices or a finer trace",
        UsageError);
  }
}

}  // namespace stageline::balanced_tests
