// Does a device that runs both layers of tied weights hold them once, and two devices a copy each?
#include "cost_models/tied_weights.hpp"

#include <doctest/doctest.h>

#include "cost_models/state_bytes.hpp"

namespace stageline::tied_weights_tests {
namespace {

// 1000 parameters at each end, 10 of the head's own.
Model tied_model() {
  Model model;
  model.name = "tied";
  for (const char* const name : {"embedding", "block", "head"}) {
    Layer layer;
    layer.name = name;
    layer.parameters = 1000;
    layer.weights = layer.gradients = Bytes{2000};
    layer.optimizer_state = Bytes{12000};
    layer.update = Time{4000};
    layer.update_spread = Time{40};
    model.layers.push_back(layer);
  }
  Layer& head = model.layers.back();
  head.parameters = 10;
  head.tied_weights = Bytes{2000};
  head.weights = head.gradients = Bytes{2020};
  head.optimizer_state = Bytes{12120};
  head.update = Time{4040};
  return model;
}

Placement placed(const std::vector<std::vector<int>>& stages) {
  Placement placement;
  for (const std::vector<int>& devices : stages) placement.stage.emplace_back().replicas = devices;
  return placement;
}

const Partition whole{{0, 0, 0}, 1};
const Partition halves{{0, 0, 1}, 2};

TEST_CASE("on one device the head of tied weights holds and updates its own part alone") {
  const Model once = held_once(tied_model());
  const Layer& head = once.layers.back();
  CHECK(head.weights == Bytes{20});
  CHECK(head.gradients == Bytes{20});
  CHECK(head.optimizer_state == Bytes{120});
  CHECK(head.update == Time{40});
  CHECK(head.update_spread == Time{0});
  CHECK(head.shared_weights == Bytes{2000});
  CHECK(once.layers.front() == tied_model().layers.front());
  CHECK(update_once(tied_model()) == Time{8040});
  CHECK(held_on(tied_model(), whole, placed({{0}})) == once);
  CHECK(held_once(once) == once);
}

TEST_CASE("a copy is held where a device of the head's stage has no embedding") {
  const Model once = held_once(tied_model());
  CHECK(held_on(tied_model(), halves, placed({{0}, {0}})) == once);  // the ends of a V
  CHECK(held_on(tied_model(), halves, placed({{0, 1}, {1}})) == once);
  CHECK(held_on(tied_model(), halves, placed({{0}, {1}})) == tied_model());
  CHECK(held_on(tied_model(), halves, placed({{0}, {0, 1}})) == tied_model());
  Placement apart = placed({{0}, {0}});
  apart.stage[1].weight_grad = {1};
  CHECK(held_on(tied_model(), halves, apart) == tied_model());
  CHECK(holds_copies(tied_model(), halves, apart));
  CHECK_FALSE(holds_copies(tied_model(), whole, placed({{0}})));
}

TEST_CASE("a recipe and ZeRO leave tied weights their part of the layer's") {
  Degrees degrees;
  degrees.data = 2;
  degrees.precision = find_precision("fp32");
  degrees.zero = Zero::weights;
  const Model state = with_state(tied_model(), degrees);
  CHECK(state.layers.back().weights == Bytes{4 * 505});
  CHECK(state.layers.back().tied_weights == Bytes{4 * 500});
  CHECK(held_once(state).layers.back().optimizer_state == Bytes{8 * 5});
}

}  // namespace
}  // namespace stageline::tied_weights_tests
