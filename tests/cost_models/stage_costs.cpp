// Do stages cost what their layers cost?
#include "cost_models/stage_costs.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "cost_models/roofline.hpp"
#include "sim/base/errors.hpp"

namespace stageline::stage_costs_tests {
namespace {

DeviceKind device_kind() {
  DeviceKind kind;
  kind.name = "any";
  kind.memory_bandwidth = {1'000'000'000'000};
  kind.peak = {{"fp32", 1e13}};
  return kind;
}

Layer plain_layer(const std::string& name, std::int64_t time, std::int64_t output) {
  Layer layer;
  layer.name = name;
  layer.forward = Time{time};
  layer.input_grad = Time{2 * time};
  layer.weight_grad = Time{3 * time};
  layer.backward = Time{4 * time};  // less than the halves, as when measured as one
  layer.update = Time{5 * time};
  layer.output = Bytes{output};
  layer.workspace = layer.forward_workspace = layer.backward_workspace = Bytes{7 * output};
  return layer;
}

// 0 feeds 1, 2 and 3; they feed each other in a row.
Model branching_model() {
  Model model;
  model.name = "branching";
  model.batch = 1;
  model.layers = {plain_layer("a", 10, 100), plain_layer("b", 20, 200), plain_layer("c", 30, 300),
                  plain_layer("d", 41, 400)};
  model.edges = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {2, 3}};
  model.input = Bytes{50};
  return model;
}

Cluster cluster_of(int devices) { return uniform_cluster(devices, std::nullopt, std::nullopt); }

StageCosts summed(const std::vector<StageCosts>& stages) {
  StageCosts sum;
  for (const StageCosts& s : stages) {
    sum.forward += s.forward;
    sum.input_grad += s.input_grad;
    sum.weight_grad += s.weight_grad;
    sum.backward += s.backward;
    sum.recompute += s.recompute;
    sum.update += s.update;
    sum.weights += s.weights;
    sum.gradients += s.gradients;
    sum.optimizer_state += s.optimizer_state;
    sum.stash_input_grad += s.stash_input_grad;
    sum.stash_weight_grad += s.stash_weight_grad;
    sum.stash_gradient += s.stash_gradient;
  }
  return sum;
}

TEST_CASE("however a model is cut, its stages add up to the model") {
  std::mt19937_64 random(20240607);
  for (const char* name : {"resnet50", "resnet20", "vgg16", "gpt"}) {
    const Model model = roofline(model_shape(name), device_kind(), {});
    const int layers = static_cast<int>(model.layers.size());
    const Costs whole =
        stage_costs(model, partition_from_cuts({}, layers), straight_placement(1), cluster_of(1));
    REQUIRE(whole.stages() == 1);
    CHECK(whole.edges.empty());
    CHECK(whole.stage[0].forward + whole.stage[0].backward == forward_backward(model));
    CHECK(whole.stage[0].boundary == model.input);
    StageCosts expected = whole.stage[0];
    expected.boundary = {};
    expected.workspace = {};
    expected.backward_workspace.reset();
    expected.input_grad_workspace.reset();
    expected.divided_input_grad_workspace.reset();
    expected.recomputed_workspace.reset();
    expected.weight_grad_workspace.reset();
    expected.steps = {};
    for (int round = 0; round < 50; ++round) {
      std::vector<int> cuts(as_size(layers) - 1);
      std::iota(cuts.begin(), cuts.end(), 0);
      for (std::size_t i = cuts.size(); i > 1; --i) std::swap(cuts[i - 1], cuts[random() % i]);
      cuts.resize(random() % 9);
      std::sort(cuts.begin(), cuts.end());
      const Partition partition = partition_from_cuts(cuts, layers);
      const Costs costs = stage_costs(model, partition, straight_placement(partition.stages),
                                      cluster_of(partition.stages));
      CAPTURE(name);
      CAPTURE(print(partition));
      CHECK(summed(costs.stage) == expected);
      Bytes inputs{}, flows{};
      for (const StageCosts& stage : costs.stage) inputs += stage.boundary;
      for (const EdgeCosts& edge : costs.edges) {
        CHECK(edge.activation == edge.gradient);
        flows += edge.activation;
      }
      CHECK(inputs == flows + model.input);
      CHECK(costs.network.devices == partition.stages);
    }
  }
}

TEST_CASE("stages of a branching model receive each tensor once") {
  const Partition partition{{0, 1, 1, 2}, 3};
  const Costs costs =
      stage_costs(branching_model(), partition, straight_placement(3), cluster_of(3));
  REQUIRE(costs.edges.size() == 3);
  CHECK(costs.edges[0] == EdgeCosts{{0, 1}, Bytes{100}, Bytes{100}});  // to b and c, once
  CHECK(costs.edges[1] == EdgeCosts{{0, 2}, Bytes{100}, Bytes{100}});
  CHECK(costs.edges[2] == EdgeCosts{{1, 2}, Bytes{300}, Bytes{300}});  // b's output stays inside
  CHECK(costs.stage[0].boundary == Bytes{50});
  CHECK(costs.stage[1].boundary == Bytes{100});
  CHECK(costs.stage[2].boundary == Bytes{400});
  CHECK(costs.stage[1].forward == Time{50});
  CHECK(costs.stage[1].recompute == Time{50});
  CHECK(costs.stage[1].input_grad == Time{100});
  CHECK(costs.stage[1].weight_grad == Time{150});
  CHECK(costs.stage[1].backward == Time{200});
  CHECK(costs.stage[1].update == Time{250});
  CHECK(costs.stage[1].workspace == Bytes{2100 + 300});  // of c, the larger one, with its output
  // With the gradient that came for c; when b runs, those of b and, for a, c's part of it.
  CHECK(costs.stage[1].backward_workspace == Bytes{2100 + 300});
  // Nobody reads the last layer; those that it makes for a and c are there when it has run.
  CHECK(costs.stage[2].backward_workspace == Bytes{2800 + 100 + 300});
}

TEST_CASE("recomputation takes what was measured of it, else as long as the forward") {
  Model model = branching_model();
  model.layers[1].recompute = Time{13};  // F takes 20
  Cluster slow = cluster_of(1);
  slow.devices[0].rate = 0.5;
  slow.devices[0].op_overhead = Time{3};
  const Costs costs = stage_costs(model, {{0, 0, 0, 0}, 1}, straight_placement(1), slow);
  CHECK(costs.stage[0].forward == Time{2 * (10 + 20 + 30 + 41) + 3});
  CHECK(costs.stage[0].recompute == Time{2 * (10 + 13 + 30 + 41) + 3});
}

TEST_CASE("workspace counts beside the stash that is there when a layer needs it") {
  Model model = branching_model();
  model.edges.clear();
  for (Layer& layer : model.layers) layer.stash_weight_grad = Bytes{1000};
  model.layers[3].forward_workspace = model.layers[3].backward_workspace = Bytes{10};
  const Costs costs = stage_costs(model, {{0, 0, 0, 0}, 1}, straight_placement(1), cluster_of(1));
  // Of 4000 bytes of stash 3000 are there when c needs 2100, and makes 300; backward, when it takes
  // a gradient of 300.
  CHECK(costs.stage[0].workspace == Bytes{3000 + 2100 + 300 - 4000});
  CHECK(costs.stage[0].backward_workspace == Bytes{3000 + 300 + 2100 - 4000});
  // Where its ReLU reads the output again, that is there, too, though d's stash counts it.
  model.layers[2].output_kept = Bytes{300};
  const Costs kept = stage_costs(model, {{0, 0, 0, 0}, 1}, straight_placement(1), cluster_of(1));
  CHECK(kept.stage[0].workspace == costs.stage[0].workspace);
  CHECK(kept.stage[0].backward_workspace == Bytes{3000 + 300 + 300 + 2100 - 4000});
}

TEST_CASE("a tensor that layers on both sides of a cut keep is in the stash of both") {
  Model model = branching_model();  // a feeds b, c, d; they feed each other
  for (Layer& layer : model.layers) layer.stash_weight_grad = Bytes{1000};
  const auto stashes = [&](const Partition& partition) {
    std::vector<std::int64_t> all;
    const Costs costs =
        stage_costs(model, partition, straight_placement(partition.stages), cluster_of(4));
    for (const StageCosts& stage : costs.stage) all.push_back(stage.stash().count);
    return all;
  };
  const Partition apart{{0, 1, 2, 3}, 4};
  CHECK(stashes(apart) == std::vector<std::int64_t>{1000, 1000, 1000, 1000});
  // b's ReLU reads its own output, which c reads, too: it is in c's stash, and now also in b's.
  model.layers[1].output_kept = Bytes{200};
  model.layers[2].input_kept = Bytes{200};
  model.layers[2].stash_input_grad = Bytes{200};
  CHECK(stashes(apart) == std::vector<std::int64_t>{1000, 1200, 1200, 1000});
  CHECK(stashes({{0, 1, 1, 2}, 3}) == std::vector<std::int64_t>{1000, 2200, 1000});
  // Where c does not keep it, b alone does.
  model.layers[2].input_kept = Bytes{};
  CHECK(stashes(apart) == std::vector<std::int64_t>{1000, 1200, 1000, 1000});
}

TEST_CASE("what the layers keep from I to W adds up, however a cut changes what only I reads") {
  Model model = branching_model();
  model.edges.clear();  // a chain
  const auto stages = [&](const Partition& partition) {
    std::string text;
    for (const StageCosts& stage :
         stage_costs(model, partition, straight_placement(partition.stages), cluster_of(4)).stage) {
      text += fmt::format("{}/{} ", stage.stash().count, stage.stash_after_input_grad().count);
    }
    return text;
  };
  for (Layer& layer : model.layers) {
    layer.stash_input_grad = Bytes{30};
    layer.stash_weight_grad = Bytes{1000};
  }
  model.layers[2].stash_gradient = Bytes{500};
  CHECK(stages({{0, 0, 1, 1}, 2}) == "2060/2000 2060/2500 ");
  // a has no I, and its ReLU reads its own output. So that waits for a's W: where b, which frees it
  // after its I, is in the same stage, it stays; and a stage that has a alone keeps it as long.
  model.layers[0].output_kept = Bytes{20};
  model.layers[1].input_kept = Bytes{20};
  model.layers[1].weight_grad = Time{};
  CHECK(stages({{0, 0, 1, 1}, 2}) == "2060/2020 2060/2500 ");
  CHECK(stages({{0, 1, 1, 1}, 2}) == "1050/1020 3090/3500 ");
  // Where b's W reads it too, it is counted for W already.
  model.layers[1].weight_grad = Time{60};
  CHECK(stages({{0, 0, 1, 1}, 2}) == "2060/2000 2060/2500 ");
  // b's ReLU alone reads its output, behind a cut: c, which counts it, does not hold it. What I
  // leaves for W is the same, though some of that stood in its place.
  model.layers[0].output_kept = model.layers[1].input_kept = Bytes{};
  model.layers[1].output_kept = Bytes{90};
  CHECK(stages({{0, 0, 1, 2}, 3}) == "2150/2000 940/1500 1030/1000 ");
}

TEST_CASE("I and W have workspaces of their own") {
  Model model = branching_model();
  model.edges.clear();
  for (Layer& layer : model.layers) {
    layer.stash_input_grad = Bytes{10};
    layer.stash_weight_grad = Bytes{1000};
    layer.stash_gradient = Bytes{20};
    layer.output = Bytes{100};
    layer.backward_workspace = layer.input_grad_workspace = layer.weight_grad_workspace = Bytes{5};
  }
  const auto of = [&](const Partition& partition) {
    return stage_costs(model, partition, straight_placement(partition.stages), cluster_of(2))
        .stage.front();
  };
  const StageCosts all = of({{0, 0, 0, 0}, 1});
  // I runs down to b: behind it the stash of a, what is left of the others', and the gradient that
  // waits for a's W.
  CHECK(all.stash() == Bytes{4040});
  CHECK(all.input_grad_workspace == Bytes{1010 + 3 * 1020 + 5 + 100 - 4040});
  // W begins with all that I has left.
  CHECK(all.stash_after_input_grad() == Bytes{4080});
  CHECK(all.weight_grad_workspace == Bytes{5});
  // a has no I, in which the gradient that it waits with only arrives.
  CHECK(of({{0, 1, 1, 1}, 2}).input_grad_workspace == Bytes{100});
}

TEST_CASE("while an op runs it holds what its layers hold, one after the other") {
  Model model = branching_model();
  model.edges.clear();  // a chain
  model.layers.pop_back();
  for (Layer& layer : model.layers) {
    layer.stash_weight_grad = Bytes{1000};
    layer.forward_workspace = layer.backward_workspace = Bytes{};
  }
  model.layers[1].input_kept = Bytes{100};  // of a, counted in b's stash
  model.layers[1].output_kept = model.layers[2].input_kept = Bytes{200};
  model.layers[1].input_grad_workspace = Bytes{7};
  const Costs costs = stage_costs(model, {{0, 0, 1}, 2}, straight_placement(2), cluster_of(2));
  const StageCosts& first = costs.stage[0];
  // b's ReLU reads its own output, which c keeps, too: it is in the stash of both stages, and takes
  // no further room while it is sent.
  CHECK(first.stash() == Bytes{2200});
  CHECK(costs.edges[0] == EdgeCosts{{0, 1}, Bytes{200}, Bytes{200}, Bytes{200}});
  // a leaves its stash and, for b, its output; b the whole stash. a takes a third of the time.
  CHECK(first.steps.forward == HeldSteps{{10. / 30, Bytes{1100 - 2200}}, {1, Bytes{}}});
  // b finds the gradient that has come for it and leaves one for a.
  CHECK(first.steps.backward == HeldSteps{{80. / 120, Bytes{200}}, {1, Bytes{1100 - 2200}}});
  CHECK(first.backward_workspace == Bytes{200});
  // b leaves its stash to W; a has no I.
  CHECK(first.steps.input_grad == HeldSteps{{1, Bytes{200 + 7}}, {1, Bytes{2100 - 2200}}});
  CHECK(first.steps.weight_grad == HeldSteps{{60. / 90, Bytes{}}, {1, Bytes{1000 - 2000}}});
  // Without its stash, F has a's input, and then the output of a or of b beside what it makes.
  CHECK(first.steps.lone_forward == HeldSteps{{10. / 30, Bytes{950 + 100}}, {1, Bytes{900 + 200}}});
}

TEST_CASE("a device's overhead is part of each of its ops") {
  Cluster cluster = cluster_of(2);
  cluster.devices[1].op_overhead = Time{7};
  const Partition halves{{0, 0, 1, 1}, 2};
  const Costs plain = stage_costs(branching_model(), halves, straight_placement(2), cluster_of(2));
  const Costs costs = stage_costs(branching_model(), halves, straight_placement(2), cluster);
  CHECK(costs.stage[0] == plain.stage[0]);
  for (Time StageCosts::*const time :
       {&StageCosts::forward, &StageCosts::input_grad, &StageCosts::weight_grad,
        &StageCosts::backward, &StageCosts::recompute, &StageCosts::update}) {
    CHECK(costs.stage[1].*time == plain.stage[1].*time + Time{7});
  }
}

TEST_CASE("a cut inside a residual block moves both tensors") {
  const ModelShape shape = model_shape("resnet20");
  const Model model = roofline(shape, device_kind(), {.batch = 1});
  REQUIRE(model.layers.at(3).name == "layer1.1.conv1");
  const auto moved = [&](int last) {
    return stage_costs(model, partition_from_cuts({last}, static_cast<int>(model.layers.size())),
                       straight_placement(2), cluster_of(2))
        .edges.at(0)
        .activation;
  };
  const Bytes tensor{4 * 16 * 32 * 32};
  CHECK(moved(2) == tensor);
  CHECK(moved(3) == tensor * 2);
}

TEST_CASE("a device twice as fast takes half the time, rounded once a stage") {
  Cluster cluster = cluster_of(2);
  cluster.devices[1].rate = 2;
  const Partition partition{{0, 0, 1, 1}, 2};
  const Costs costs = stage_costs(branching_model(), partition, straight_placement(2), cluster);
  CHECK(costs.stage[0].forward == Time{30});
  CHECK(costs.stage[1].forward == Time{36});  // (30 + 41) / 2, not 15 + 21 rounded apart
  CHECK(costs.stage[1].recompute == Time{36});
  CHECK(costs.stage[1].input_grad == Time{71});
  CHECK(costs.stage[1].backward == Time{142});
  CHECK(costs.stage[1].update == Time{178});
  CHECK(costs.stage[1].boundary == Bytes{300});  // bytes know no speed
}

TEST_CASE("at rate 1 even a sum that no double holds stays exact") {
  Model model = branching_model();
  model.layers[0].forward = Time{(1LL << 53) + 1 - 91};  // with the other three: 2^53 + 1
  const Costs costs =
      stage_costs(model, partition_from_cuts({}, 4), straight_placement(1), cluster_of(1));
  CHECK(costs.stage[0].forward == Time{(1LL << 53) + 1});
}

TEST_CASE("each role is timed on the device it is placed on") {
  Cluster cluster = cluster_of(3);
  cluster.devices[1].rate = 2;
  cluster.devices[2].rate = 10;
  Placement placement = straight_placement(1);
  placement.stage[0].input_grad = {1};
  placement.stage[0].weight_grad = {2};
  const Partition all = partition_from_cuts({}, 4);
  const StageCosts stage = stage_costs(branching_model(), all, placement, cluster).stage[0];
  CHECK(stage.forward == Time{101});
  CHECK(stage.input_grad == Time{101});
  CHECK(stage.weight_grad == Time{39});  // a tenth of 30 and, of b, c and d, 4 · 91
}

TEST_CASE("a W apart from I makes the gradients inside its stage, too") {
  Model model = branching_model();
  const auto weight_grads = [&](const Placement& placement) {
    std::vector<std::int64_t> times;
    const Costs costs = stage_costs(model, partition_from_cuts({0}, 4), placement, cluster_of(3));
    for (const StageCosts& stage : costs.stage) times.push_back(stage.weight_grad.count());
    return times;
  };
  using Times = std::vector<std::int64_t>;
  Placement placement = straight_placement(2);
  CHECK(weight_grads(placement) == Times{3 * 10, 3 * 91});
  SUBCASE("on the I's device") {
    placement.stage[1].input_grad = placement.stage[1].weight_grad = {2};
    CHECK(weight_grads(placement) == Times{3 * 10, 3 * 91});
  }
  SUBCASE("on another: of the lowest layer its own W, of the others I and W") {
    placement.stage[1].weight_grad = {2};
    CHECK(weight_grads(placement) == Times{3 * 10, 3 * 20 + 4 * 71});
    placement.stage[0].weight_grad = {2};
    CHECK(weight_grads(placement) == Times{3 * 10, 3 * 20 + 4 * 71});
  }
  SUBCASE("the lowest layer's as measured") {
    model.layers[1].lone_weight_grad = Time{77};
    CHECK(weight_grads(placement) == Times{3 * 10, 3 * 91});
    placement.stage[1].weight_grad = {2};
    CHECK(weight_grads(placement) == Times{3 * 10, 77 + 4 * 71});
  }
  SUBCASE("beside a part of I") {
    placement.stage[1].input_grad = {1, 2};
    placement.stage[1].share = {0.5, 0.5};
    CHECK(weight_grads(placement) == Times{3 * 10, 3 * 20 + 4 * 71});
  }
}

TEST_CASE("devices of unequal speed share a stage, each at its pace") {
  Cluster cluster = cluster_of(3);
  cluster.devices[1].rate = 2;
  const Partition all = partition_from_cuts({}, 4);
  const Costs shared = stage_costs(branching_model(), all, replicated_placement({2}), cluster);
  CHECK(shared.stage[0].forward == Time{51});  // 101 on the fastest device
  CHECK(shared.pace == std::vector<double>{2, 1, 2});
  CHECK(shared.paced(Time{51}, 0) == Time{102});
  CHECK(shared.paced(Time{51}, 1) == Time{51});
  const Costs alone = stage_costs(branching_model(), all, straight_placement(1), cluster);
  CHECK(alone.stage[0].forward == Time{101});
  CHECK(alone.pace.empty());
  CHECK(alone.paced(Time{101}, 0) == Time{101});
}

TEST_CASE("placements that do not suit are refused in words") {
  Cluster cluster = cluster_of(3);
  const Partition all = partition_from_cuts({}, 4);
  const auto refused = [&](const Placement& placement, const char* words) {
    CHECK_THROWS_WITH_AS(stage_costs(branching_model(), all, placement, cluster),
                         doctest::Contains(words), UsageError);
  };
  refused(straight_placement(2), "has 1 stages and the placement 2");
  refused(replicated_placement({0}), "no device");
  refused(replicated_placement({4}), "device 3, but the cluster has 3");
  cluster.devices[0].rate = 0;
  refused(straight_placement(1), "a rate is a positive number");
  cluster.devices[0].rate = 1e-30;
  refused(straight_placement(1), "at most 100000 s");
}

TEST_CASE("sums beyond 64 bits are refused, not wrapped") {
  const Partition all = partition_from_cuts({}, 4);
  Model model = branching_model();
  for (Layer& layer : model.layers) layer.stash_weight_grad = Bytes{1LL << 62};
  CHECK_THROWS_WITH_AS(stage_costs(model, all, straight_placement(1), cluster_of(1)),
                       doctest::Contains("stash does not fit in 64 bits"), UsageError);
  model = branching_model();
  for (Layer& layer : model.layers) layer.output = Bytes{1LL << 62};
  CHECK_THROWS_AS(stage_costs(model, all, straight_placement(1), cluster_of(1)), UsageError);
  model = branching_model();
  for (Layer& layer : model.layers) layer.forward = longest_input;
  CHECK_THROWS_WITH_AS(stage_costs(model, all, straight_placement(1), cluster_of(1)),
                       doctest::Contains("at most 100000 s"), UsageError);
}

}  // namespace
}  // namespace stageline::stage_costs_tests
