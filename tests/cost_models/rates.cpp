// Do times follow the rates of devices by class?
#include "sim/rates.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "cost_models/serial.hpp"
#include "cost_models/stage_costs.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::rates_tests {
namespace {

Layer classed_layer(std::int64_t time, bool memory_bound) {
  Layer layer;
  layer.forward = Time{time};
  layer.input_grad = Time{2 * time};
  layer.weight_grad = Time{3 * time};
  layer.backward = Time{4 * time};
  layer.update = Time{7};
  layer.memory_bound = memory_bound;
  return layer;
}

Model classed_model() {
  Model model;
  model.name = "classed";
  model.layers = {classed_layer(100, false), classed_layer(30, true), classed_layer(1000, false),
                  classed_layer(51, true)};
  return model;
}

Cluster two_devices() { return uniform_cluster(2, std::nullopt, std::nullopt); }

TEST_CASE("layers bound by memory follow the memory's rate, the others the arithmetic's") {
  Cluster cluster = two_devices();
  cluster.devices[0].rate = 4;
  cluster.devices[0].memory_rate = 2;
  cluster.devices[1].rate = 0.5;
  cluster.devices[1].memory_rate = 3;
  const Costs costs =
      stage_costs(classed_model(), partition_from_cuts({1}, 4), straight_placement(2), cluster);
  CHECK(costs.stage[0].forward == Time{40});       // 100 / 4 + 30 / 2
  CHECK(costs.stage[0].recompute == Time{40});     // as the forward
  CHECK(costs.stage[0].input_grad == Time{80});    // 200 / 4 + 60 / 2
  CHECK(costs.stage[0].weight_grad == Time{120});  // 300 / 4 + 90 / 2
  CHECK(costs.stage[0].backward == Time{160});     // 400 / 4 + 120 / 2
  CHECK(costs.stage[0].update == Time{7});         // 14 / 2
  CHECK(costs.stage[1].forward == Time{2017});     // 1000 / 0.5 + 51 / 3
  CHECK(costs.stage[1].update == Time{5});         // 14 / 3, rounded once
}

TEST_CASE("a sum is rounded once a stage, not once a class") {
  Model model;
  model.layers = {classed_layer(1, false), classed_layer(1, true)};
  Cluster cluster = uniform_cluster(1, std::nullopt, std::nullopt);
  cluster.devices[0].rate = 2;
  cluster.devices[0].memory_rate = 4;
  const Costs costs =
      stage_costs(model, partition_from_cuts({}, 2), straight_placement(1), cluster);
  CHECK(costs.stage[0].forward == Time{1});  // 0.5 + 0.25: halves of each would make 1 + 0
  cluster.devices[0].memory_rate = 1;
  cluster.devices[0].rate = 0.8;
  CHECK(stage_costs(model, partition_from_cuts({}, 2), straight_placement(1), cluster)
            .stage[0]
            .backward == Time{9});  // 5 + 4
}

TEST_CASE("without a memory rate, or with one that is the rate, the class does not matter") {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    Model model;
    for (int l = 0; l < 4; ++l) {
      model.layers.push_back(classed_layer(static_cast<std::int64_t>(random() % 1000), false));
    }
    Cluster cluster = two_devices();
    for (Device& device : cluster.devices)
      device.rate = 0.1 * (1 + static_cast<int>(random() % 30));
    const auto forward = [&] {
      std::vector<Time> times;
      for (const StageCosts& stage :
           stage_costs(model, partition_from_cuts({1}, 4), straight_placement(2), cluster).stage) {
        times.push_back(stage.forward);
        times.push_back(stage.update);
      }
      times.push_back(time_on_one_device(model, cluster, 3, 2));
      return times;
    };
    const std::vector<Time> plain = forward();
    for (Layer& layer : model.layers) layer.memory_bound = random() % 2 == 0;
    CHECK(forward() == plain);
    for (Device& device : cluster.devices) device.memory_rate = device.rate;
    CHECK(forward() == plain);
  }
}

TEST_CASE("the one device that a speed-up is against is the fastest at that work") {
  Model model = classed_model();
  Cluster cluster = two_devices();
  cluster.devices[0].rate = 2;
  cluster.devices[0].memory_rate = 0.1;
  // F and B: 5500 of arithmetic and 405 of memory; updates 28
  CHECK(time_on_one_device(model, cluster, 1, 1) == Time{5933});  // 2750 + 4330 on the other one
  for (Layer& layer : model.layers) layer.memory_bound = false;
  CHECK(time_on_one_device(model, cluster, 1, 1) == Time{3233});  // 5905 / 2 + 280, rounded
  cluster.devices[0].memory_rate = 0;
  CHECK(time_on_one_device(model, cluster, 1, 1) == Time{2967});
}

TEST_CASE("replicas may be slower by one factor in both classes, and not otherwise") {
  const Model model = classed_model();
  Cluster cluster = two_devices();
  Placement both = straight_placement(1);
  both.stage[0].replicas = {0, 1};
  cluster.devices[0].rate = 2;
  cluster.devices[0].memory_rate = 4;
  cluster.devices[1].memory_rate = 2;
  const Costs costs = stage_costs(model, partition_from_cuts({}, 4), both, cluster);
  CHECK(costs.stage[0].forward == Time{570});  // 1100 / 2 + 81 / 4 on the fastest
  CHECK(costs.pace == std::vector<double>{1, 2});
  cluster.devices[1].memory_rate = 1;
  CHECK_THROWS_WITH_AS(
      stage_costs(model, partition_from_cuts({}, 4), both, cluster),
      "replicas of a stage must be slower by one factor in rate and memory rate, and gpu1 has 1 and 1 "
      "where the fastest has 2 and 4; give each stage one device, or equal ones",
      UsageError);
}

TEST_CASE("a memory rate that is no number is refused") {
  Cluster cluster = two_devices();
  cluster.devices[1].memory_rate = -1;
  CHECK_THROWS_WITH_AS(
      stage_costs(classed_model(), partition_from_cuts({1}, 4), straight_placement(2), cluster),
      "device gpu1 has memory rate -1; it is a positive number, or 0 for that of its arithmetic",
      UsageError);
}

}  // namespace
}  // namespace stageline::rates_tests
