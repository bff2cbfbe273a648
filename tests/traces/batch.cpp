// Are costs at another batch size what the measured ones say, and is the error reported?
#include "cost_models/batch.hpp"

#include <cmath>

#include "tests/traces/support.hpp"
#include "traces/traces.hpp"

namespace stageline::batch_tests {
namespace {

// a + b·batch in every quantity, with other a and b in each layer.
Model affine(int batch, int layers = 3) {
  Model model;
  model.name = "affine";
  model.batch = batch;
  model.input = Bytes{std::int64_t{1000} * batch};
  for (int i = 0; i < layers; ++i) {
    const auto line = [&](std::int64_t a, std::int64_t b) { return (a + b * batch) * (i + 1); };
    Layer layer;
    layer.name = "l" + std::to_string(i);
    layer.forward = Time{line(12'345'678, 910'111)};
    layer.input_grad = Time{line(0, 2'000'003)};
    layer.weight_grad = Time{line(77'777'777, 0)};
    layer.backward = layer.input_grad + layer.weight_grad;
    layer.forward_spread = Time{line(5, 1)};
    layer.backward_spread = Time{line(3, 2)};
    layer.update = Time{1000 + i};
    layer.update_spread = Time{10 + i};
    layer.weights = Bytes{40 + i};
    layer.gradients = Bytes{40 + i};
    layer.output = Bytes{line(0, 4096)};
    layer.stash_input_grad = Bytes{line(64, 4096)};
    layer.stash_weight_grad = Bytes{line(0, 1)};
    layer.forward_flops = line(0, 3);
    layer.backward_flops = line(0, 6);
    layer.selective_flops = line(0, 1);
    layer.stash_gradient = Bytes{line(5, 3)};
    layer.workspace = Bytes{line(1'000'000, 0)};
    model.layers.push_back(layer);
  }
  return model;
}

Model without_provenance(Model model) {
  model.provenance = Provenance{};
  return model;
}

}  // namespace

TEST_CASE("costs that are affine in the batch size are met exactly at every size") {
  const std::vector<Model> measured{affine(8), affine(16), affine(64)};
  for (const int batch : {1, 7, 12, 33, 64, 100, 4096}) {
    CAPTURE(batch);
    CHECK(without_provenance(at_batch(measured, batch)) == affine(batch));
  }
  const std::vector<Model> two{affine(16), affine(8)};
  CHECK(without_provenance(at_batch(two, 12)) == affine(12));
}

TEST_CASE("a size that was measured is that model, as it is") {
  const std::vector<Model> measured{affine(8), affine(16), affine(64)};
  CHECK(at_batch(measured, 16) == measured[1]);
  CHECK(at_batch({affine(5)}, 5) == affine(5));
}

TEST_CASE("a fitted model is an estimate and says how good and how far") {
  const std::vector<Model> measured{affine(8), affine(16), affine(64)};
  const Model inside = at_batch(measured, 32);
  CHECK(inside.provenance.origin == Origin::estimated);
  REQUIRE(inside.provenance.notes.size() == 1);
  CHECK(contains(inside.provenance.notes[0], "Batch 32 is interpolated"));
  CHECK(contains(inside.provenance.notes[0], "batch sizes 8, 16, 64"));
  CHECK(contains(inside.provenance.notes[0], "over 3 layers: median 0.00 %, worst 0.00 %"));
  CHECK(contains(at_batch(measured, 65).provenance.notes[0], "Batch 65 is extrapolated"));
  CHECK(contains(at_batch(measured, 7).provenance.notes[0], "Batch 7 is extrapolated"));
  CHECK(contains(at_batch({affine(8), affine(16)}, 9).provenance.notes[0], "two sizes fix a line"));
}

TEST_CASE("the residual of costs that are not affine is reported") {
  // One layer at 10, 40, 40 µs for batches 1, 2, 3, all in F. The least-squares line is 15·x, with
  // a = 0 free of any constraint: 15, 30, 45. Residuals 50 %, 25 % and 12.5 %; the worst counts.
  std::vector<Model> measured;
  for (const auto& [batch, us] : std::vector<std::pair<int, int>>{{1, 10}, {2, 40}, {3, 40}}) {
    Model model = uniform_model("layers=1,forward=0,input_grad=0,weight_grad=0");
    model.batch = batch;
    model.layers[0].forward = std::chrono::microseconds(us);
    measured.push_back(model);
  }
  const Model model = at_batch(measured, 4);
  CHECK(model.layers[0].forward == std::chrono::microseconds(60));
  CHECK(model.provenance.origin == Origin::synthetic);
  CHECK(contains(model.provenance.notes[0], "median 50.00 %, worst 50.00 % (\"layer0\")"));
}

TEST_CASE("neither the constant nor the slope becomes negative") {
  const auto forward_at = [](const std::vector<std::int64_t>& ps, int at) {
    std::vector<Model> measured;
    for (std::size_t i = 0; i < ps.size(); ++i) {
      Model model = uniform_model("layers=1,forward=0,input_grad=0,weight_grad=0");
      model.batch = static_cast<int>(i) + 1;
      model.layers[0].forward = Time{ps[i]};
      measured.push_back(model);
    }
    return at_batch(measured, at).layers[0].forward.count();
  };
  // The free line is -1000 + 1500·x; through 0 the best slope is Σxy / Σx² = 4500 / 5.
  CHECK(forward_at({500, 2000}, 10) == 4500 * 10 / 5);
  // Falling: the mean.
  CHECK(forward_at({3000, 2000, 1000}, 10) == 2000);
  CHECK(forward_at({0, 0, 0}, 10) == 0);
}

TEST_CASE("one size is scaled in proportion, and the note says so") {
  Model measured = affine(10);
  measured.provenance.origin = Origin::measured;
  const Model model = at_batch({measured}, 25);
  CHECK(model.batch == 25);
  CHECK(model.input == Bytes{25'000});
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& was = measured.layers[i];
    const Layer& is = model.layers[i];
    CHECK(is.input_grad == was.input_grad * 5 / 2);
    CHECK(is.output == Bytes{was.output.count * 5 / 2});
    CHECK(is.backward == is.input_grad + is.weight_grad);
    CHECK(is.weights == was.weights);
    CHECK(is.update == was.update);
    CHECK(is.update_spread == was.update_spread);
    CHECK(is.backward_spread.count() == std::llround(was.backward_spread.count() * 2.5));
  }
  CHECK(model.provenance.origin == Origin::estimated);
  CHECK(contains(model.provenance.notes.back(), "batch 10 in proportion"));
}

TEST_CASE("the update's time and spread are the means over the sizes") {
  Model small = affine(8);
  Model large = affine(16);
  small.layers[0].update = Time{100};
  large.layers[0].update = Time{300};
  small.layers[0].update_spread = Time{10};
  large.layers[0].update_spread = Time{40};
  const Layer layer = at_batch({small, large}, 1000).layers[0];
  CHECK(layer.update == Time{200});
  CHECK(layer.update_spread == Time{25});
}

TEST_CASE("a size that was not measured has no whole run") {
  Model small = affine(8);
  Model large = affine(16);
  small.whole = {5, Time{1}, Time{2}, Time{3}, Time{4}, Time{5}};
  large.whole = {5, Time{10}, Time{20}, Time{30}, Time{40}, Time{50}};
  CHECK(at_batch({small, large}, 12).whole == WholeRun{});
  CHECK(at_batch({small}, 12).whole == WholeRun{});
  CHECK(at_batch({small, large}, 16).whole == large.whole);
}

TEST_CASE("only layers over one percent of the time count in the residual") {
  // Layer 0 takes nearly all the time and is affine; layer 1 is wild, but under 1 %.
  std::vector<Model> measured;
  for (const int batch : {1, 2, 3}) {
    Model model = uniform_model("layers=2,forward=0,input_grad=0,weight_grad=0");
    model.batch = batch;
    model.layers[0].forward = std::chrono::milliseconds(batch);
    model.layers[1].forward = std::chrono::microseconds(batch == 2 ? 9 : 1);
    measured.push_back(model);
  }
  CHECK(contains(at_batch(measured, 4).provenance.notes[0], "over 1 layer: median 0.00 %"));
}

TEST_CASE("what cannot be scaled is refused") {
  const auto error = [](const std::vector<Model>& measured, int batch) {
    return usage_error_of([&] { at_batch(measured, batch); });
  };
  CHECK(contains(error({affine(8)}, 0), "at least 1 (it is 0)"));
  CHECK(contains(error({}, 1), "no measured model"));
  Model unknown = affine(8);
  unknown.batch = 0;
  CHECK(contains(error({unknown}, 4), "does not say its batch size"));
  CHECK(contains(error({affine(8), affine(16, 4)}, 4), "not the same layers"));
  CHECK(contains(error({affine(8), affine(8)}, 4), "two measurements at batch 8"));
  Model long_layer = affine(1);
  long_layer.layers[0].forward = longest_input;
  CHECK(contains(error({long_layer}, 2), "at most 100000 s"));
  Model large = affine(1);
  large.layers[0].output = Bytes{std::int64_t{1} << 61U};
  CHECK(contains(error({large}, 3), "at most 2^62"));
}

}  // namespace stageline::batch_tests
