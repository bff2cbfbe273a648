// Does the option `width` make narrower nets of the same kind, and nothing else?
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cost_models/roofline.hpp"
#include "cost_models/shapes/shapes.hpp"
#include "sim/base/errors.hpp"

namespace stageline::widths_tests {
namespace {

TEST_CASE("width is the channels of the first convolution, and all others keep the proportion") {
  const auto parameters = [](const std::string& name, std::int64_t width) {
    return model_shape(name, {{"width", width}}).parameters;
  };
  const auto conv = [](std::int64_t in, std::int64_t out, std::int64_t kernel) {
    return in * out * kernel * kernel + out;
  };
  const auto linear = [](std::int64_t in, std::int64_t out) { return (in + 1) * out; };
  for (const std::int64_t w : {1, 4, 16, 24}) {
    CAPTURE(w);
    for (const std::int64_t depth : {20, 110}) {
      // A convolution has no bias, and its norm two weights a channel.
      const std::int64_t n = (depth - 2) / 6;
      const std::int64_t products = 27 * w + 18 * n * w * w + (2 * 9 + 36 * (2 * n - 1)) * w * w +
                                    (8 * 9 + 144 * (2 * n - 1)) * w * w;
      const std::int64_t norms = 2 * (w + 2 * n * (w + 2 * w + 4 * w));
      CHECK(parameters(fmt::format("resnet{}", depth), w) == products + norms + linear(4 * w, 10));
    }
    CHECK(parameters("alexnet_cifar", w) == conv(3, w, 11) + conv(w, 3 * w, 3) +
                                                conv(3 * w, 6 * w, 3) + conv(6 * w, 4 * w, 3) +
                                                conv(4 * w, 4 * w, 3) + linear(16 * w, 64 * w) +
                                                linear(64 * w, 64 * w) + linear(64 * w, 10));
    CHECK(parameters("vgg16_cifar", w) ==
          conv(3, w, 3) + conv(w, w, 3) + conv(w, 2 * w, 3) + conv(2 * w, 2 * w, 3) +
              conv(2 * w, 4 * w, 3) + 2 * conv(4 * w, 4 * w, 3) + conv(4 * w, 8 * w, 3) +
              5 * conv(8 * w, 8 * w, 3) + 2 * linear(8 * w, 8 * w) + linear(8 * w, 10));
  }
  // 16, 120 and 84 of LeNet-5's 6 are rounded up.
  CHECK(parameters("lenet5", 3) ==
        conv(1, 3, 5) + conv(3, 8, 5) + linear(200, 60) + linear(60, 42) + linear(42, 10));
  CHECK(parameters("lenet5", 1) ==
        conv(1, 1, 5) + conv(1, 3, 5) + linear(75, 20) + linear(20, 14) + linear(14, 10));
}

TEST_CASE("the usual width is the model without the option, and no other changes its layers") {
  const std::map<std::string, std::int64_t> usual = {
      {"lenet5", 6},    {"alexnet_cifar", 64}, {"vgg16_cifar", 64}, {"resnet20", 16},
      {"resnet56", 16}, {"resnet110", 16},     {"resnet224", 16},   {"resnet362", 16}};
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    const std::vector<std::string> options = model_options(name);
    const bool has = std::count(options.begin(), options.end(), "width") == 1;
    CHECK(has == (usual.count(name) == 1));
    if (!has) continue;
    const ModelShape model = model_shape(name);
    CHECK(model_shape(name, {{"width", usual.at(name)}}) == model);
    CHECK(model.layers.front().output.front() == usual.at(name));
    const ModelShape narrow = model_shape(name, {{"width", 2}});
    CHECK(narrow.layers.front().output.front() == 2);
    REQUIRE(narrow.layers.size() == model.layers.size());
    CHECK(narrow.edges == model.edges);
    CHECK(narrow.input == model.input);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      CHECK(narrow.layers[i].name == model.layers[i].name);
      // Each reads what the one before it makes: the widths fit together.
      if (i == 0 || !model.edges.empty()) continue;
      CHECK(narrow.layers[i].ops.front().forward.reads == output_elements(narrow.layers[i - 1]));
    }
    CHECK(output_elements(narrow.layers.back()) == 10);
  }
}

TEST_CASE("a width is written like any other option of a model") {
  const ModelShape narrow = model_shape("resnet20", {{"width", 4}});
  CHECK(parse_shape("resnet20,width=4") == narrow);
  DeviceKind kind;
  kind.name = "made-up";
  kind.memory_bandwidth = {100'000'000'000};
  kind.peak = {{"fp32", 1e12}};
  const Model priced = priced_model("model:resnet20@made-up,dtype=fp32,batch=8,width=4", {kind});
  std::int64_t bytes = 0;
  for (const Layer& layer : priced.layers) bytes += layer.weights.count;
  CHECK(bytes == 4 * narrow.parameters);
}

TEST_CASE(
    "a width that no net can have is refused, and so is one for nets that have no such option") {
  CHECK_THROWS_WITH_AS(model_shape("resnet20", {{"width", 0}}),
                       "resnet20: width must be from 1 to 4096, not 0", UsageError);
  CHECK_THROWS_WITH_AS(model_shape("lenet5", {{"width", 4097}}), doctest::Contains("not 4097"),
                       UsageError);
  CHECK_THROWS_WITH_AS(model_shape("vgg16", {{"width", 4}}), doctest::Contains("it has none"),
                       UsageError);
  CHECK_THROWS_WITH_AS(parse_shape("resnet20,width=0"), doctest::Contains("from 1, not 0"),
                       UsageError);
}

}  // namespace
}  // namespace stageline::widths_tests
