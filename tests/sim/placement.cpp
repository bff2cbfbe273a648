// Which device, which stage, which edges; and which cuts are refused?
#include "sim/placement.hpp"

#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "sim/graph.hpp"
#include "tests/schedules/needs_table.hpp"
#include "tests/text.hpp"

namespace stageline::placement_tests {
namespace {

// Layers l0.. of one byte times their number plus one; a chain unless edges are given.
Model layers(int count, std::vector<LayerEdge> edges = {}) {
  Model model;
  model.name = "test";
  for (int i = 0; i < count; ++i) {
    Layer layer;
    layer.name = "l" + std::to_string(i);
    layer.output = Bytes{i + 1};
    layer.forward = Time{i};
    layer.backward = Time{10 * i};
    model.layers.push_back(layer);
  }
  model.edges = std::move(edges);
  return model;
}

std::string refusal(const Partition& partition, const Model& model) {
  return test::complaint<UsageError>([&] { check(partition, model); });
}

std::string flows(const Partition& partition, const Model& model) {
  std::string text;
  for (const StageFlow& flow : stage_flows(partition, model)) {
    text += std::to_string(flow.edge.from) + ">" + std::to_string(flow.edge.to) + ":" +
            std::to_string(flow.bytes.count) + " ";
  }
  return text;
}

TEST_CASE("a straight placement has stage s on device s") {
  const Placement placement = straight_placement(3);
  CHECK(placement.stages() == 3);
  for (int s = 0; s < 3; ++s) {
    CHECK(device_of(placement, test::op(OpKind::forward, s, 7)) == s);
    CHECK(device_of(placement, test::op(OpKind::update, s, 7)) == s);
  }
}

TEST_CASE("replicas take micro-batches in turn, and updates by their part") {
  const Placement placement = replicated_placement({3, 1});
  CHECK(placement.stage[0].replicas == std::vector<int>{0, 1, 2});
  CHECK(placement.stage[1].replicas == std::vector<int>{3});
  for (const OpKind kind : {OpKind::forward, OpKind::backward, OpKind::input_grad,
                            OpKind::weight_grad, OpKind::recompute, OpKind::send_forward,
                            OpKind::receive_backward, OpKind::offload, OpKind::prefetch}) {
    CHECK(device_of(placement, test::op(kind, 0, 4)) == 1);
    CHECK(device_of(placement, test::op(kind, 1, 4)) == 3);
  }
  CHECK(device_of(placement, test::op(OpKind::update, 0, 4, 2)) == 2);
  CHECK(device_of(placement, test::op(OpKind::reduce_grad, 0, 4, 0)) == 0);
  CHECK(device_of(placement, test::op(OpKind::update, 0, 4, 3)) == -1);
}

TEST_CASE("roles on devices of their own are found by role and part") {
  Placement placement = straight_placement(1);
  placement.stage[0].input_grad = {4, 5};
  placement.stage[0].weight_grad = {6};
  CHECK(device_of(placement, test::op(OpKind::forward, 0, 0)) == 0);
  CHECK(device_of(placement, test::op(OpKind::input_grad, 0, 0)) == 4);
  CHECK(device_of(placement, test::op(OpKind::input_grad, 0, 0, 1)) == 5);
  CHECK(device_of(placement, test::op(OpKind::input_grad, 0, 0, 2)) == -1);
  CHECK(device_of(placement, test::op(OpKind::weight_grad, 0, 0)) == 6);
  CHECK(device_of(straight_placement(1), test::op(OpKind::input_grad, 0, 0, 1)) == -1);
}

TEST_CASE("cuts name the last layer of every stage but the last") {
  const Partition partition = partition_from_cuts({1, 3}, 6);
  CHECK(partition.stages == 3);
  CHECK(partition.stage_of == std::vector<int>{0, 0, 1, 1, 2, 2});
  CHECK(print(partition) == "0-1 | 2-3 | 4-5");
  CHECK(print(partition_from_cuts({}, 3)) == "0-2");
  CHECK(print(partition_from_cuts({0, 1}, 3)) == "0 | 1 | 2");
  CHECK(print(Partition{{0, 1, 0, 1, 1}, 2}) == "0,2 | 1,3-4");
}

TEST_CASE("a partition must cover the layers, leave no stage empty and never go back") {
  CHECK(refusal({{0, 0, 1}, 2}, layers(3)) == "");
  CHECK(refusal({{0, 1}, 2}, layers(3)) == "the partition has 2 layers, but the trace has 3");
  CHECK(refusal({{0, 1, 2}, 2}, layers(3)) ==
        "layer 2 (\"l2\") is put in stage 2, but there are stages 0 to 1 only");
  CHECK(refusal({{0, -1, 1}, 2}, layers(3)) ==
        "layer 1 (\"l1\") is put in stage -1, but there are stages 0 to 1 only");
  CHECK(refusal({{0, 0, 2}, 3}, layers(3)) ==
        "stage 1 of 3 has no layer; every stage needs at least one");
  CHECK(refusal({{0, 1, 0}, 2}, layers(3)) ==
        "layer 1 (\"l1\", stage 1) feeds layer 2 (\"l2\", stage 0); "
        "a stage may feed later stages only");
}

TEST_CASE("branches may share a stage or lie in different ones") {
  const Model fork = layers(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  CHECK(refusal({{0, 0, 1, 1}, 2}, fork) == "");
  CHECK(refusal({{0, 1, 0, 1}, 2}, fork) == "");
  CHECK(refusal({{0, 1, 2, 3}, 4}, fork) == "");
  CHECK(refusal({{0, 2, 1, 3}, 4}, fork) == "");
  CHECK(refusal({{1, 1, 0, 1}, 2}, fork) != "");
}

TEST_CASE("a layer's output crosses once to every stage that reads it") {
  CHECK(flows({{0, 0, 1}, 2}, layers(3)) == "0>1:2 ");
  // l0 is read by l1 in its own stage and by l2 and l3 in the next: once.
  CHECK(flows({{0, 0, 1, 1}, 2}, layers(4, {{0, 1}, {0, 2}, {0, 3}, {1, 2}})) == "0>1:3 ");
  // and by two stages: once each.
  CHECK(flows({{0, 1, 2}, 3}, layers(3, {{0, 1}, {0, 2}, {1, 2}})) == "0>1:1 0>2:1 1>2:2 ");
  CHECK(flows({{0, 0, 0}, 1}, layers(3)) == "");
}

TEST_CASE("chain edges join each stage to the next") {
  CHECK(chain_edges(3) == std::vector<StageEdge>{{0, 1}, {1, 2}});
  CHECK(chain_edges(1).empty());
  CHECK(chain_edges(0).empty());
}

TEST_CASE("a topological order keeps the given one where it can") {
  CHECK(topological_order(4, {{0, 1}, {1, 2}, {2, 3}}).order == std::vector<int>{0, 1, 2, 3});
  CHECK(topological_order(4, {{3, 0}}).order == std::vector<int>{1, 2, 3, 0});
  CHECK(topological_order(3, {}).order == std::vector<int>{0, 1, 2});
  CHECK(topological_order(3, {{0, 1}, {0, 1}, {1, 2}}).order == std::vector<int>{0, 1, 2});
}

TEST_CASE("a cycle is returned instead, each node leading to the next") {
  const std::vector<std::pair<int, int>> edges = {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}};
  const GraphOrder order = topological_order(5, edges);
  CHECK(order.order.empty());
  REQUIRE(order.cycle.size() == 3);
  for (std::size_t i = 0; i < order.cycle.size(); ++i) {
    const std::pair<int, int> edge{order.cycle[i], order.cycle[(i + 1) % order.cycle.size()]};
    CHECK(std::find(edges.begin(), edges.end(), edge) != edges.end());
  }
  CHECK(topological_order(2, {{1, 1}}).cycle == std::vector<int>{1});
}

TEST_CASE("layers are put in order, and their edges renumbered") {
  const Model model = in_topological_order(layers(3, {{2, 0}, {0, 1}}), "x.json");
  std::string names;
  for (const Layer& layer : model.layers) names += layer.name + " ";
  CHECK(names == "l2 l0 l1 ");
  CHECK(model.edges == std::vector<LayerEdge>{{0, 1}, {1, 2}});
  CHECK(edges_of(layers(3)) == std::vector<LayerEdge>{{0, 1}, {1, 2}});
  CHECK(forward_backward(layers(3)) == Time{33});
}

TEST_CASE("layers that feed each other in a circle are named") {
  CHECK(test::complaint<TraceError>([] {
          in_topological_order(layers(3, {{0, 1}, {1, 2}, {2, 1}}), "x.json");
        }) ==
        "x.json at /edges: the layers feed each other in a circle: \"l1\" → \"l2\" → \"l1\"; a "
        "layer graph must have no cycle");
  CHECK(test::complaint<TraceError>([] {
          in_topological_order(layers(2, {{0, 2}}), "x.json");
        }) == "x.json at /edges: an edge names layer 2, but there are layers 0 to 1 only");
}

}  // namespace
}  // namespace stageline::placement_tests
