// Does a rank hold the bytes of the recipe, divided as ZeRO divides them?
#include "cost_models/state_bytes.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cost_models/roofline.hpp"
#include "sim/base/errors.hpp"

namespace stageline::state_bytes_tests {
namespace {

Layer weighing(std::string name, std::int64_t parameters) {
  Layer layer;
  layer.name = std::move(name);
  layer.parameters = parameters;
  layer.weights = layer.gradients = Bytes{4 * parameters};
  layer.optimizer_state = Bytes{8 * parameters};
  layer.update = Time{1000};
  return layer;
}

Model of_layers(std::vector<Layer> layers) {
  Model model;
  model.name = "m";
  model.layers = std::move(layers);
  return model;
}

TEST_CASE(
    "7.5 billion parameters on 64 ranks take 120, 31.4, 16.6 and 1.88 GB, as in ZeRO's "
    "figure 1") {
  const std::vector<std::string> printed{"120.00", "31.41", "16.64", "1.88"};
  for (std::size_t level = 0; level < printed.size(); ++level) {
    const StateBytes state =
        state_bytes(7'500'000'000, find_precision("mixed"), all_zeros[level], 64);
    CHECK(fmt::format("{:.2f}", static_cast<double>(state.total().count) / 1e9) == printed[level]);
  }
}

TEST_CASE(
    "a distributed optimizer takes 6 + 12/n, 4 + 16/n and 8 + 8/n bytes, as in Megatron-LM's "
    "table") {
  const std::int64_t parameters = 1'920'000;
  const auto total = [&](const char* precision, Zero zero, int ranks) {
    return state_bytes(parameters, find_precision(precision), zero, ranks).total().count;
  };
  for (const int n : {1, 2, 3, 64}) {
    CHECK(total("bf16", Zero::optimizer, n) == 6 * parameters + 12 * parameters / n);
    CHECK(total("fp16", Zero::optimizer, n) == 4 * parameters + 16 * parameters / n);
    CHECK(total("fp32", Zero::optimizer, n) == 8 * parameters + 8 * parameters / n);
    CHECK(total("mixed", Zero::gradients, n) == 2 * parameters + 14 * parameters / n);
    CHECK(total("mixed", Zero::weights, n) == 16 * parameters / n);
    CHECK(total("bf16", Zero::none, n) == 18 * parameters);
    CHECK(total("fp16", Zero::none, n) == 20 * parameters);
    CHECK(total("fp32", Zero::none, n) == 16 * parameters);
    CHECK(total("fp8", Zero::none, n) == 18 * parameters);
    CHECK(total("fp8-block", Zero::none, n) == 20 * parameters);
    CHECK(total("mxfp8", Zero::none, n) == 18 * parameters + parameters / 16);
    CHECK(total("nvfp4", Zero::none, n) == 19 * parameters + parameters / 8);
    CHECK(total("bf16-moments", Zero::none, n) == 12 * parameters);
    CHECK(total("precision-aware", Zero::optimizer, n) == 4 * parameters + 6 * parameters / n);
    CHECK(total("precision-aware-fp8", Zero::none, n) == 8 * parameters);
  }
}

TEST_CASE("a part that does not divide is rounded up by a whole parameter") {
  const StateBytes state = state_bytes(10, find_precision("bf16"), Zero::weights, 4);
  CHECK(state == StateBytes{{2 * 3}, {4 * 3}, {12 * 3}});
  CHECK(state_bytes(0, find_precision("bf16"), Zero::weights, 4).total() == Bytes{});
}

TEST_CASE("ranks gather weights in 8 bits where the recipe does, else in 16") {
  for (const char* const name : {"fp32", "bf16", "fp8", "precision-aware", ""}) {
    CHECK(gathered_share({name, 2, 4, 12}) == 1);
  }
  const auto gathered = [](const char* name) {
    const Precision& precision = find_precision(name);
    return gathered_share(precision) * precision.weights;
  };
  CHECK(gathered("fp8-current") == doctest::Approx(1));
  CHECK(gathered("fp8-delayed") == doctest::Approx(1));
  for (const char* const name : {"fp8-block", "mxfp8", "nvfp4", "mxfp8-precision-aware"}) {
    CAPTURE(name);
    CHECK(gathered(name) == doctest::Approx(2));
  }
}

TEST_CASE("a precision is found by its name, and too many bytes are refused") {
  for (const PrecisionRecipe& recipe : precision_recipes()) {
    CHECK(find_precision(std::string(recipe.precision.name)) == recipe.precision);
    CHECK_FALSE(recipe.source.empty());
  }
  CHECK_THROWS_WITH_AS(find_precision("bf61"), doctest::Contains("did you mean \"bf16\""),
                       UsageError);
  CHECK_THROWS_WITH_AS(state_bytes(std::int64_t{1} << 60, find_precision("bf16"), Zero::none, 1),
                       doctest::Contains("2^62"), UsageError);
}

TEST_CASE("a model without degrees stays as it is") {
  const Model model = of_layers({weighing("a", 1000), weighing("b", 10)});
  CHECK(with_state(model, {}) == model);
}

TEST_CASE("a recipe replaces the trace's bytes, also of weights that are another layer's") {
  Model model = of_layers({weighing("embedding", 1000), weighing("head", 900)});
  model.layers[1].parameters = 0;  // tied: counted once, held twice
  Degrees degrees;
  degrees.precision = find_precision("bf16");
  const Model state = with_state(model, degrees);
  CHECK(state.layers[0].weights == Bytes{2000});
  CHECK(state.layers[0].gradients == Bytes{4000});
  CHECK(state.layers[0].optimizer_state == Bytes{12000});
  CHECK(state.layers[1].weights == Bytes{1800});
  CHECK(state.layers[1].optimizer_state == Bytes{12 * 900});
  model.layers[0].parameters = 0;
  CHECK_THROWS_WITH_AS(with_state(model, degrees), doctest::Contains("precision bf16"), UsageError);
}

TEST_CASE("ZeRO divides among data- and context-parallel ranks, and the optimizer's step too") {
  const Model model = of_layers({weighing("a", 1000), weighing("b", 10)});
  Degrees degrees;
  degrees.data = 2;
  degrees.context = 4;
  degrees.zero = Zero::optimizer;
  const Model first = with_state(model, degrees);
  CHECK(first.layers[0].optimizer_state == Bytes{1000});
  CHECK(first.layers[0].gradients == Bytes{4000});
  CHECK(first.layers[0].weights == Bytes{4000});
  CHECK(first.layers[0].update == Time{125});
  CHECK(first.layers[1].update == Time{990 + 1});  // 10 parameters at 1 ps, and what is beyond
  CHECK(first.layers[0].workspace == Bytes{});
  Model unknown = model;
  for (Layer& layer : unknown.layers) layer.parameters = 0;
  CHECK(with_state(unknown, degrees).layers[1].update == Time{125});
  degrees.zero = Zero::gradients;
  const Model second = with_state(model, degrees);
  CHECK(second.layers[0].gradients == Bytes{500});
  CHECK(second.layers[0].weights == Bytes{4000});
  CHECK(second.layers[0].forward_workspace == Bytes{});
  CHECK(second.layers[0].backward_workspace == Bytes{4000});
}

TEST_CASE("where ZeRO 2 and 3 exchange once a step, the optimizer alone is divided at the peak") {
  const Model model = of_layers({weighing("a", 1000), weighing("b", 10)});
  Degrees degrees;
  degrees.data = 8;
  degrees.pipeline = 2;
  degrees.zero = Zero::optimizer;
  const Model first = with_state(model, degrees);
  for (const Zero zero : {Zero::gradients, Zero::weights}) {
    degrees.zero = zero;
    degrees.zero_every.reset();
    CHECK(with_state(model, degrees) == first);
    degrees.zero_every = ZeroEvery::microbatch;
    CHECK(with_state(model, degrees).layers[0].gradients == Bytes{4000 / 8});
    degrees.pipeline = 1;
    CHECK(with_state(model, degrees).layers[0].gradients == Bytes{4000 / 8});
    degrees.zero_every = ZeroEvery::step;
    CHECK(with_state(model, degrees) == first);
    degrees.pipeline = 2;
  }
}

TEST_CASE("a shard group divides state by its own ranks") {
  const Model model = of_layers({weighing("a", 1000), weighing("b", 10)});
  Degrees degrees;
  degrees.data = 8;
  degrees.pipeline = 1;
  degrees.zero = Zero::weights;
  degrees.precision = find_precision("bf16");
  const Layer all = with_state(model, degrees).layers[0];
  CHECK(all.optimizer_state == Bytes{12 * 125});
  degrees.shard_group = {ShardSpan::ranks, 2};
  const Layer two = with_state(model, degrees).layers[0];
  CHECK(two.weights == Bytes{2 * 500});
  CHECK(two.gradients == Bytes{4 * 500});
  CHECK(two.optimizer_state == Bytes{12 * 500});
  CHECK(two.update == Time{500});
  CHECK(two.forward_workspace == Bytes{2 * 1000 + 2 * 10});  // gathered, as among all
  CHECK(two.forward_workspace == all.forward_workspace);
  // A group of one divides nothing.
  degrees.shard_group.ranks = 1;
  Degrees none = degrees;
  none.zero = Zero::none;
  CHECK(with_state(model, degrees) == with_state(model, none));
}

// 1000 parameters of a rank, of which 800 are of its experts.
Layer routed() {
  Layer layer = weighing("moe", 1000);
  layer.expert_parameters = 800;
  return layer;
}

TEST_CASE("ZeRO divides experts among the ranks that hold the same ones") {
  Degrees degrees;
  degrees.data = 4;
  degrees.context = 2;
  degrees.expert = 4;
  CHECK(ranks_that_hold(degrees, WeightKind::dense) == 8);
  CHECK(ranks_that_hold(degrees, WeightKind::experts) == 2);
  const Model model = of_layers({weighing("dense", 1000), routed()});
  degrees.zero = Zero::optimizer;
  const Layer as_stated = with_state(model, degrees).layers[1];
  CHECK(as_stated.weights == Bytes{4000});
  CHECK(as_stated.gradients == Bytes{4000});
  CHECK(as_stated.optimizer_state == Bytes{8 * (200 / 8 + 800 / 2)});
  CHECK(as_stated.update == Time{200 / 8 + 800 / 2});
  degrees.precision = find_precision("bf16");
  const Model first = with_state(model, degrees);
  CHECK(first.layers[0].optimizer_state == Bytes{12 * 1000 / 8});
  CHECK(first.layers[1].optimizer_state == Bytes{12 * (200 / 8 + 800 / 2)});
  CHECK(first.layers[1].gradients == Bytes{4 * 1000});
  degrees.zero = Zero::weights;
  const Model third = with_state(model, degrees);
  CHECK(third.layers[1].weights == Bytes{2 * (200 / 8 + 800 / 2)});
  CHECK(third.layers[1].forward_workspace == Bytes{2 * 1000});  // gathered
  // Two groups of four: of 8 ranks four divide dense weights, of 2 with the same experts one.
  degrees.shard_group = {ShardSpan::ranks, 4};
  CHECK(ranks_that_divide(degrees, WeightKind::dense) == 4);
  CHECK(ranks_that_divide(degrees, WeightKind::experts) == 1);
  CHECK(with_state(model, degrees).layers[1].weights == Bytes{2 * (200 / 4 + 800)});
  degrees.shard_group = {};
  degrees.expert = 8;  // nobody else has these experts
  CHECK(with_state(model, degrees).layers[1].weights == Bytes{2 * (200 / 8 + 800)});
}

TEST_CASE("experts with a tensor degree of their own are held by other numbers of ranks") {
  Degrees degrees;
  degrees.tensor = 2;
  degrees.data = 4;
  degrees.expert = 8;
  degrees.expert_tensor = 1;
  CHECK(ranks_that_hold(degrees, WeightKind::dense) == 4);
  CHECK(ranks_that_hold(degrees, WeightKind::experts) == 1);
  degrees.expert = 2;
  CHECK(ranks_that_hold(degrees, WeightKind::experts) == 4);
  // Among the tensor-parallel ranks of a lone replica nobody else has the dense weights.
  degrees.data = 1;
  degrees.tensor = 4;
  CHECK(ranks_that_hold(degrees, WeightKind::dense) == 1);
  CHECK(ranks_that_hold(degrees, WeightKind::experts) == 2);
  const Model model = of_layers({weighing("dense", 1000), routed()});
  degrees.precision = find_precision("bf16");
  degrees.zero = Zero::optimizer;
  const Model first = with_state(model, degrees);
  CHECK(first.layers[0].optimizer_state == Bytes{12 * 1000});
  CHECK(first.layers[1].optimizer_state == Bytes{12 * (200 + 800 / 2)});
  CHECK(first.layers[1].update == Time{200 + 800 / 2});
  degrees.zero = Zero::weights;
  const Model third = with_state(model, degrees);
  CHECK(third.layers[0].weights == Bytes{2 * 1000});
  CHECK(third.layers[1].weights == Bytes{2 * (200 + 800 / 2)});
  CHECK(third.layers[1].forward_workspace == Bytes{2 * 800});  // gathered
}

TEST_CASE("with EP 64 over 128 data-parallel ranks, two of them divide an expert's optimizer") {
  // The routed experts of a block of DeepSeek-V3: 256 of three matrices of 7168 × 2048.
  const std::int64_t experts = std::int64_t{256} * 3 * 7168 * 2048 / 64;
  const std::int64_t others = std::int64_t{128} * 1'500'000;
  Layer block = weighing("block", experts + others);
  block.expert_parameters = experts;
  Degrees degrees;
  degrees.data = 128;
  degrees.expert = 64;
  degrees.zero = Zero::optimizer;
  degrees.precision = find_precision("bf16");
  CHECK(with_state(of_layers({block}), degrees).layers[0].optimizer_state ==
        Bytes{12 * (experts / 2 + others / 128)});
}

TEST_CASE("bytes are of experts in proportion to the parameters") {
  const Layer layer = routed();
  CHECK(part_of_kind(layer, Bytes{5}, WeightKind::all) == Bytes{5});
  CHECK(part_of_kind(layer, Bytes{5}, WeightKind::experts) == Bytes{4});
  CHECK(part_of_kind(layer, Bytes{5}, WeightKind::dense) == Bytes{1});
  CHECK(part_of_kind(weighing("a", 10), Bytes{5}, WeightKind::experts) == Bytes{});
  CHECK(part_of_kind(weighing("a", 0), Bytes{5}, WeightKind::dense) == Bytes{5});
  Layer large = routed();
  large.parameters = std::int64_t{1} << 50;
  large.expert_parameters = std::int64_t{1} << 49;
  CHECK(part_of_kind(large, Bytes{std::int64_t{1} << 52}, WeightKind::experts) ==
        Bytes{std::int64_t{1} << 51});
}

TEST_CASE("where weights are divided, an op holds its layer's and the next one's whole") {
  const Model model = of_layers({weighing("a", 800), weighing("b", 80), weighing("c", 8)});
  Degrees degrees;
  degrees.data = 8;
  degrees.zero = Zero::weights;
  const Model state = with_state(model, degrees);
  CHECK(state.layers[0].weights == Bytes{400});
  CHECK(state.layers[0].forward_workspace == Bytes{3200 + 320});
  CHECK(state.layers[1].forward_workspace == Bytes{320 + 32});
  CHECK(state.layers[2].forward_workspace == Bytes{32});
  // Backward, the gradients of the layer too.
  CHECK(state.layers[0].backward_workspace == Bytes{3200 + 3200});
  CHECK(state.layers[1].input_grad_workspace == Bytes{320 + 3200 + 320});
  CHECK(state.layers[2].weight_grad_workspace == Bytes{32 + 320 + 32});
  CHECK(state.layers[0].workspace == Bytes{6400});
}

TEST_CASE("a priced transformer holds what a recipe says of each weight") {
  DeviceKind kind;
  kind.name = "h100";
  kind.memory_bandwidth = {3'350'000'000'000};
  kind.peak = {{"bf16", 989.4e12}};
  const Model model = priced_model("gpt@h100,layers=2,hidden=512,vocab=1024,tp=4", {kind});
  Degrees degrees;
  degrees.precision = find_precision("mixed");
  const Model state = with_state(model, degrees);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    CAPTURE(model.layers[i].name);
    CHECK(state.layers[i].weights == model.layers[i].weights);
    CHECK(state.layers[i].gradients == model.layers[i].gradients);
    CHECK(state.layers[i].optimizer_state == model.layers[i].optimizer_state);
  }
}

}  // namespace
}  // namespace stageline::state_bytes_tests
