// Where devices hold several stages: is the cut even over the devices?
#include "schedulers/partition/device_loads.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/partition/models.hpp"

namespace stageline::device_loads_tests {

using namespace stageline::testing;

namespace {

using Placed = std::vector<std::vector<int>>;

Placed v_shape(int devices) {
  Placed placed;
  for (int s = 0; s < 2 * devices; ++s) placed.push_back({s < devices ? s : 2 * devices - 1 - s});
  return placed;
}
Placed loop(int devices, int chunks) {
  Placed placed;
  for (int s = 0; s < devices * chunks; ++s) placed.push_back({s % devices});
  return placed;
}
Placed two_ways(int devices) {
  Placed placed;
  for (int s = 0; s < devices; ++s) placed.push_back({s, devices - 1 - s});
  return placed;
}

PartitionRequest request_for(const Model& model, const Cluster& cluster, const Placed& placed) {
  PartitionRequest request{model, cluster, static_cast<int>(placed.size()), false, ""};
  request.placed = placed;
  return request;
}

// By the definition, with nothing of the partitioner's.
double busiest(const PartitionRequest& request, const std::vector<int>& stage_of) {
  std::vector<double> load(request.cluster.devices.size());
  for (std::size_t layer = 0; layer < stage_of.size(); ++layer) {
    const Layer& costs = request.model.layers[layer];
    const auto& devices = nth(request.placed, stage_of[layer]);
    for (const int device : devices) {
      nth(load, device) += static_cast<double>((costs.forward + costs.backward).count()) /
                           static_cast<double>(devices.size()) /
                           nth(request.cluster.devices, device).rate;
    }
  }
  return *std::max_element(load.begin(), load.end());
}

// The least over all cuts.
double best(const PartitionRequest& request) {
  const std::size_t layers = request.model.layers.size();
  std::vector<int> stage_of(layers);
  double least = 1e300;
  const std::function<void(std::size_t, int)> cut = [&](std::size_t layer, int stage) {
    if (layer == layers) {
      if (stage == request.stages - 1) least = std::min(least, busiest(request, stage_of));
      return;
    }
    for (const int next : {stage, stage + 1}) {
      if (next == request.stages || (layer == 0 && next != 0)) continue;
      stage_of[layer] = next;
      cut(layer + 1, next);
    }
  };
  cut(0, 0);
  return least;
}

}  // namespace

TEST_CASE("a heavy last layer of a V leaves its device hardly another") {
  const Model model = chain({1, 1, 1, 1, 1, 1, 1, 1, 6});
  const Cluster cluster = uniform_cluster(2, {}, {});
  const PartitionPlan plan = partition("by_device", request_for(model, cluster, v_shape(2)));
  CHECK(print(plan.partition) == "0 | 1-5 | 6-7 | 8");
  CHECK(plan.reason ==
        "busiest device 7.000 ms in 4 stages, 0.0 % over the mean; 0 B a micro-batch between "
        "stages");
}

TEST_CASE("equal layers stay in equal stages") {
  const Model model = chain(std::vector<int>(16, 1));
  const Cluster cluster = uniform_cluster(4, {}, {});
  for (const Placed& placed : {v_shape(4), loop(4, 2), two_ways(4)}) {
    const PartitionPlan plan = partition("by_device", request_for(model, cluster, placed));
    std::vector<int> sizes(placed.size());
    for (const int stage : plan.partition.stage_of) ++nth(sizes, stage);
    CHECK(*std::min_element(sizes.begin(), sizes.end()) ==
          *std::max_element(sizes.begin(), sizes.end()));
  }
}

TEST_CASE("no cut is much more even, and the one by stages never is") {
  std::mt19937 random(11);
  int exact = 0;
  int tried = 0;
  for (int round = 0; round < 120; ++round) {
    const int devices = 2 + draw(random, 2);
    const Placed placed = round % 3 == 0   ? v_shape(devices)
                          : round % 3 == 1 ? loop(devices, 2)
                                           : two_ways(devices);
    const Model model =
        random_model(random, static_cast<int>(placed.size()) + 4 + draw(random, 5), round % 2 == 0);
    Cluster cluster = uniform_cluster(devices, {}, {});
    if (round % 4 == 0) cluster.devices[0].rate = 2;
    const PartitionRequest request = request_for(model, cluster, placed);
    const PartitionPlan plan = partition("by_device", request);
    CAPTURE(round);
    const double found = busiest(request, plan.partition.stage_of);
    const double least = best(request);
    REQUIRE(found >= least - 1e-6);
    CHECK(found <= 1.35 * least + 4);
    exact += found <= least + 1e-6 ? 1 : 0;
    ++tried;
    PartitionRequest by_stage = request;
    by_stage.placed.clear();
    if (round % 4 == 0) continue;  // it would take other speeds
    const PartitionPlan plain = partition("balanced", by_stage);
    CHECK(found <= busiest(request, plain.partition.stage_of) + 1e-6);
  }
  CHECK(2 * exact >= tried);
  MESSAGE(exact << " of " << tried << " are the best there is");
}

}  // namespace stageline::device_loads_tests
