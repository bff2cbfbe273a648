// Do tensors that change devices take their time from the ops at both ends, and no others?
#include "cost_models/handover.hpp"

#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::handover_tests {
namespace {

constexpr Time us{1'000'000};

// A byte takes 2 ps to write for others, and 1 ps to read from them.
const Handover cores{Bandwidth{500'000'000'000}, Bandwidth{1'000'000'000'000}};

// Two stages, of which the first reads the data: F 10, I 20 (the second alone), W 30, B 50, U 5 µs,
// activations of 1 MB, stashes of 3 MB of which W reads 2, weights and gradients of 4 MB.
Costs two_stages() {
  Costs costs;
  for (int s = 0; s < 2; ++s) {
    StageCosts stage;
    stage.forward = 10 * us;
    stage.input_grad = s == 0 ? Time{} : 20 * us;
    stage.weight_grad = 30 * us;
    stage.backward = 50 * us;
    stage.update = 5 * us;
    stage.stash_input_grad = Bytes{1'000'000};
    stage.stash_weight_grad = Bytes{2'000'000};
    stage.weights = stage.gradients = Bytes{4'000'000};
    costs.stage.push_back(stage);
  }
  costs.edges.push_back({{0, 1}, Bytes{1'000'000}, Bytes{1'000'000}, Bytes{}});
  return costs;
}

struct Added {
  int forward, input_grad, weight_grad, backward, update;  // µs
  friend bool operator==(const Added&, const Added&) = default;
};

std::vector<Added> added(const Placement& placement, const Handover& handover) {
  Costs costs = two_stages();
  add_handover(costs, placement, handover);
  std::vector<Added> all;
  const Costs before = two_stages();
  for (std::size_t s = 0; s < 2; ++s) {
    const auto more = [&](Time StageCosts::*op) {
      const Time time = costs.stage[s].*op - before.stage[s].*op;
      CHECK(time % us == Time{});
      return static_cast<int>(time / us);
    };
    all.push_back({more(&StageCosts::forward), more(&StageCosts::input_grad),
                   more(&StageCosts::weight_grad), more(&StageCosts::backward),
                   more(&StageCosts::update)});
  }
  return all;
}

}  // namespace

TEST_CASE("a tensor takes its time where it is made, and where it is read") {
  // F 0 writes what F 1 reads; I or B of 1 writes what the first stage's backward reads, which is W
  // where it is not B.
  CHECK(added(straight_placement(2), cores) ==
        std::vector<Added>{{0, 0, 1, 1, 0}, {1, 0, 0, 0, 0}});
  // Stores that take 25 µs drain while the op computes, and it ends with them.
  const Handover slow_writes{Bandwidth{40'000'000'000}, Bandwidth::unlimited()};
  CHECK(added(straight_placement(2), slow_writes) ==
        std::vector<Added>{{25 - 10, 0, 0, 0, 0}, {0, 25 - 20, 0, 0, 0}});
  // On one device nothing changes hands.
  Placement one = straight_placement(2);
  one.stage[1].replicas = {0};
  CHECK(added(one, cores) == std::vector<Added>{{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}});
  CHECK(added(straight_placement(2), {}) == std::vector<Added>{{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}});
}

TEST_CASE("replicas read each other's sums") {
  // The edge is between different devices for some micro-batches: as between any.
  const std::vector<Added> three = added(replicated_placement({3, 1}), cores);
  CHECK(three == std::vector<Added>{{0, 0, 1, 1, 8 + 2 * 4}, {1, 0, 0, 0, 0}});
}

TEST_CASE("replicas that others represent read as many sums as all of them would") {
  Placement both = straight_placement(2);
  both.stage[0].replicas = {0, 2};
  both.stage[1].replicas = {1, 3};
  Costs all = two_stages();
  add_handover(all, both, cores);
  Costs one = two_stages();
  add_handover(one, straight_placement(2), cores);
  add_sums_of_copies(one, straight_placement(2), cores, 2);
  CHECK(one.stage == all.stage);
  CHECK(one.stage[0].update == (5 + 8 + 4) * us);
  add_sums_of_copies(one, straight_placement(2), cores, 1);
  CHECK(one.stage == all.stage);
  add_sums_of_copies(one, straight_placement(2), {}, 2);
  CHECK(one.stage == all.stage);
}

TEST_CASE("what stays on the device of each replica is handed to nobody") {
  Placement both = straight_placement(2);
  both.stage[0].replicas = both.stage[1].replicas = {0, 1};
  CHECK(added(both, cores) == std::vector<Added>{{0, 0, 0, 0, 8 + 4}, {0, 0, 0, 0, 8 + 4}});
}

TEST_CASE("a backward on another device reads the stash, and its updates leave") {
  Placement apart = straight_placement(2);
  apart.stage[0].replicas = apart.stage[1].replicas = {0};  // PipeFB: F on one, the rest on another
  for (StagePlace& place : apart.stage) place.input_grad = place.weight_grad = {1};
  // Stashes of 3 MB and weights of 4, which take 8 µs to write; gradients stay on the second
  // device.
  CHECK(added(apart, cores) == std::vector<Added>{{4, 0, 3, 3, 8 - 5}, {4, 3, 0, 3, 8 - 5}});
  // LayerPipe: I of the second stage elsewhere than its F and W.
  Placement lone = straight_placement(2);
  lone.stage[0].replicas = lone.stage[1].replicas = {0};
  lone.stage[1].input_grad = {1};
  lone.stage[1].weight_grad = {0};
  // I writes the gradient for the first stage, and reads stash and weights; W has them at hand.
  CHECK(added(lone, cores) == std::vector<Added>{{0, 0, 1, 1, 0}, {0, 3 + 4, 0, 0, 8 - 5}});
}

TEST_CASE("what does not fit is refused with the stage") {
  Costs costs = two_stages();
  costs.edges[0].activation = Bytes{std::int64_t{1} << 40};  // 13 days
  CHECK_THROWS_WITH_AS(
      add_handover(costs, straight_placement(2), {Bandwidth{1'000'000}, Bandwidth::unlimited()}),
      doctest::Contains("stage 0 takes"), UsageError);
}

}  // namespace stageline::handover_tests
