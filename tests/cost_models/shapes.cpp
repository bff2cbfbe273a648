// Do the built-in shapes agree with the literature, and with themselves?
#include "cost_models/shapes/shapes.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/errors.hpp"

namespace stageline::shapes_tests {
namespace {

bool has_product(const Primitive& op) {
  return op.kind == PrimitiveKind::conv || op.kind == PrimitiveKind::linear ||
         op.kind == PrimitiveKind::matmul;
}

// Of convolutions and linear layers, as the literature counts.
double forward_macs(const ModelShape& model) {
  double flops = 0;
  for (const LayerShape& layer : model.layers) {
    for (const Primitive& op : layer.ops) {
      if (has_product(op)) flops += static_cast<double>(op.forward.flops);
    }
  }
  return flops / 2;
}

LayerShape layer_called(const ModelShape& model, const std::string& name) {
  for (const LayerShape& layer : model.layers) {
    if (layer.name == name) return layer;
  }
  FAIL("no layer ", name, " in ", model.name);
  return model.layers.front();
}

std::vector<std::int64_t> shape(std::initializer_list<std::int64_t> extents) { return extents; }

TEST_CASE("parameter counts are those of the literature, exactly") {
  const std::map<std::string, std::int64_t> published = {
      {"lenet5", 61'706},
      {"alexnet", 61'100'840},
      {"vgg11", 132'863'336},
      {"vgg16", 138'357'544},
      {"resnet18", 11'689'512},
      {"resnet50", 25'557'032},
      {"resnet20", 269'722},
      {"resnet56", 853'018},
      {"resnet110", 1'727'962},
      {"resnet224", 3'575'066},
      {"resnet362", 5'811'034},
      {"gpt", 124'439'808},
      {"alexnet_cifar", 23'293'770},
      {"vgg16_cifar", 15'245'130},
  };
  CHECK(model_names().size() == published.size());
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    CHECK(model_shape(name).parameters == published.at(name));
    CHECK_FALSE(model_summary(name).empty());
  }
}

TEST_CASE("the CIFAR-10 nets weigh what the stale-weights paper's memory table says") {
  const std::map<std::string, std::string> printed = {{"lenet5", "0.24"},
                                                      {"alexnet_cifar", "88.86"},  // there 88.87
                                                      {"vgg16_cifar", "58.16"},
                                                      {"resnet20", "1.03"},
                                                      {"vgg16", "527.79"}};
  for (const auto& row : printed) {
    CAPTURE(row.first);
    const double bytes = 4 * static_cast<double>(model_shape(row.first).parameters);
    CHECK(fmt::format("{:.2f}", bytes / (1 << 20)) == row.second);
  }
}

TEST_CASE("the stale-weights paper's register positions fall at the end of the first group") {
  struct Row {
    const char* name;
    std::size_t position;
    double stale_percent;
  };
  for (const Row row :
       {Row{"resnet20", 7, 5.37}, Row{"resnet56", 19, 4.98}, Row{"resnet110", 37, 4.89},
        Row{"resnet224", 75, 4.85}, Row{"resnet362", 121, 4.83}}) {
    CAPTURE(row.name);
    const ModelShape model = model_shape(row.name);
    std::int64_t before = 0;
    for (std::size_t i = 0; i < row.position; ++i) before += model.layers[i].parameters;
    const double percent =
        100 * static_cast<double>(before) / static_cast<double>(model.parameters);
    CHECK(std::abs(percent - row.stale_percent) < 0.005);
    CHECK(model.layers[row.position - 1].output == shape({16, 32, 32}));
    CHECK(model.layers[row.position].output == shape({32, 16, 16}));
  }
  CHECK(model_shape("resnet56").layers.size() == 1 + 54 + 2);
}

TEST_CASE("forward multiply-accumulates are within 1 % of the literature") {
  const std::map<std::string, double> giga = {
      {"resnet50", 4.09}, {"vgg16", 15.47}, {"alexnet", 0.714}, {"resnet18", 1.814}};
  for (const auto& row : giga) {
    CAPTURE(row.first);
    CHECK(forward_macs(model_shape(row.first)) / 1e9 == doctest::Approx(row.second).epsilon(0.01));
  }
}

TEST_CASE("GPT's products are 24·s·h² + 4·s²·h a block and 2·s·h·V for the head") {
  const std::int64_t s = 1024, h = 768, layers = 12, vocab = 50257;
  const ModelShape model = model_shape("gpt");
  const auto expected = layers * (24 * s * h * h + 4 * s * s * h) + 2 * s * h * vocab;
  CHECK(2 * forward_macs(model) == static_cast<double>(expected));
  // The rule of thumb, 6·N·T for a whole step, leaves the attention term out.
  double all = 0;
  for (const LayerShape& layer : model.layers) {
    for (const Primitive& op : layer.ops) {
      if (!has_product(op)) continue;
      all += static_cast<double>(op.forward.flops + op.input_grad.flops + op.weight_grad.flops);
    }
  }
  const auto attention = static_cast<double>(3 * layers * 4 * s * s * h);
  CHECK(all - attention ==
        doctest::Approx(6.0 * static_cast<double>(model.parameters * s)).epsilon(0.01));
}

TEST_CASE("a product with weights costs the same in F, I and W; of activations, I costs twice F") {
  for (const std::string& name : model_names()) {
    const ModelShape model = model_shape(name);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      CAPTURE(name);
      CAPTURE(model.layers[i].name);
      for (const Primitive& op : model.layers[i].ops) {
        if (!has_product(op)) continue;
        const bool weighted = op.kind != PrimitiveKind::matmul;
        CHECK(op.weight_grad.flops == (weighted ? op.forward.flops : 0));
        CHECK(op.input_grad.flops == (i == 0     ? 0
                                      : weighted ? op.forward.flops
                                                 : 2 * op.forward.flops));
      }
    }
  }
}

TEST_CASE("the first layer has no input gradient and keeps everything for W") {
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    const ModelShape model = model_shape(name);
    CHECK(total(model.layers[0], &Primitive::input_grad) == Work{});
    CHECK(total(model.layers[0], &Primitive::weight_grad) != Work{});
    CHECK(model.layers[0].stash_input_grad == 0);
    CHECK(model.layers[0].stash_weight_grad >= model.input);
    for (std::size_t i = 1; i < model.layers.size(); ++i) {
      CHECK(total(model.layers[i], &Primitive::input_grad).flops > 0);
    }
  }
}

TEST_CASE("every layer reads what its predecessor makes and makes what its shape says") {
  for (const std::string& name : model_names()) {
    const ModelShape model = model_shape(name);
    CAPTURE(name);
    const auto forward_only = [](const LayerEdge& edge) { return edge.from < edge.to; };
    CHECK(std::all_of(model.edges.begin(), model.edges.end(), forward_only));
    CHECK(model.layers[0].ops.front().forward.reads ==
          (name == "gpt" ? 2 * output_elements(model.layers[0]) : model.input));
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      CAPTURE(model.layers[i].name);
      std::int64_t weights = 0;
      for (const Primitive& op : model.layers[i].ops) weights += op.weights;
      CHECK(model.layers[i].weights == weights);
      CHECK(model.layers[i].ops.back().forward.writes == output_elements(model.layers[i]));
      if (i == 0) continue;
      std::size_t source = model.edges.empty() ? i - 1 : model.layers.size();
      for (const LayerEdge& edge : model.edges) {
        if (as_size(edge.to) == i && source == model.layers.size()) {
          source = as_size(edge.from);
        }
      }
      REQUIRE(source < i);
      CHECK(model.layers[i].ops.front().forward.reads == output_elements(model.layers[source]));
    }
  }
}

TEST_CASE("output shapes are those of torchvision and GPT-2") {
  const ModelShape resnet = model_shape("resnet50");
  CHECK(layer_called(resnet, "conv1").output == shape({64, 112, 112}));
  CHECK(layer_called(resnet, "maxpool").output == shape({64, 56, 56}));
  CHECK(layer_called(resnet, "layer2.0.conv1").output == shape({128, 56, 56}));
  CHECK(layer_called(resnet, "layer2.0.downsample").output == shape({512, 28, 28}));
  CHECK(layer_called(resnet, "layer4.2.conv3").output == shape({2048, 7, 7}));
  CHECK(layer_called(resnet, "avgpool").output == shape({2048}));
  CHECK(layer_called(resnet, "fc").output == shape({1000}));
  CHECK(layer_called(model_shape("alexnet"), "conv1").output == shape({64, 55, 55}));
  CHECK(layer_called(model_shape("alexnet"), "pool5").output == shape({256, 6, 6}));
  CHECK(layer_called(model_shape("vgg16"), "pool5").output == shape({512, 7, 7}));
  CHECK(layer_called(model_shape("gpt"), "h.11.mlp").output == shape({1024, 768}));
  CHECK(layer_called(model_shape("gpt"), "head").output == shape({1024, 50257}));
}

TEST_CASE("a convolution counts what a pencil counts") {
  const LayerShape conv1 = model_shape("lenet5").layers[0];  // 1×32×32 → 6×28×28 through 5×5
  REQUIRE(conv1.ops.size() == 2);
  const Work forward{235'200, 1'024, 4'704, 156, 0};
  const Work weight_grad{235'200, 5'728, 0, 0, 156};
  CHECK(conv1.ops[0].forward == forward);
  CHECK(conv1.ops[0].weight_grad == weight_grad);
  CHECK(conv1.ops[1].weight_grad == Work{4'704, 9'408, 4'704, 0, 0});  // the ReLU, all in W
  const LayerShape conv2 = model_shape("lenet5").layers[2];            // 6×14×14 → 16×10×10
  CHECK(conv2.ops[0].input_grad == Work{480'000, 1'600, 1'176, 2'416, 0});
}

TEST_CASE("every tensor is stashed once, by the first layer that reads it") {
  const ModelShape resnet = model_shape("resnet50");
  const std::int64_t x = 256 * 56 * 56;
  const LayerShape downsample = layer_called(resnet, "layer2.0.downsample");
  const LayerShape conv1 = layer_called(resnet, "layer2.0.conv1");
  CHECK(downsample.stash_weight_grad == x + 512 * 28 * 28);  // its input and what its norm reads
  CHECK(conv1.stash_weight_grad == 128 * 56 * 56);           // the same input, not again
  CHECK(layer_called(resnet, "layer1.1.conv1").stash_weight_grad == x + 64 * 56 * 56);
  const LayerShape pool = layer_called(resnet, "maxpool");
  CHECK(pool.stash_weight_grad == 0);
  CHECK(pool.stash_input_grad == 64 * 112 * 112 + 64 * 56 * 56);
  const LayerShape vgg = layer_called(model_shape("vgg16"), "conv1_2");
  CHECK(vgg.stash_weight_grad == 64 * 224 * 224);
  CHECK(vgg.stash_input_grad == 0);
}

TEST_CASE("I leaves a gradient for W where nothing that it frees makes room for one") {
  const ModelShape vgg = model_shape("vgg16");
  CHECK(layer_called(vgg, "conv1_2").stash_gradient == 64 * 224 * 224);
  CHECK(layer_called(vgg, "pool1").stash_gradient == 0);  // it has no W
  CHECK(layer_called(vgg, "fc2").stash_gradient == 4096);
  CHECK(layer_called(vgg, "fc3").stash_gradient == 0);  // where the loss kept the logits
  // Where a batch norm kept its input.
  const ModelShape resnet = model_shape("resnet50");
  CHECK(layer_called(resnet, "layer1.1.conv1").stash_gradient == 0);
  CHECK(layer_called(resnet, "layer2.0.downsample").stash_gradient == 0);
  // The first layer has no I: the gradient at its output waits.
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    const LayerShape first = model_shape(name).layers.front();
    CHECK(first.stash_gradient == output_elements(first));
  }
  const ModelShape gpt = model_shape("gpt");
  CHECK(layer_called(gpt, "h.3.attention").stash_gradient == 0);
  CHECK(layer_called(gpt, "h.3.mlp").stash_gradient == 0);
}

TEST_CASE("W holds 32·s·h bytes of a transformer block in two-byte numbers, as in Zero Bubble") {
  const std::int64_t s = 512, h = 1024, heads = 16;
  const ModelShape model = model_shape("gpt", {{"seq", s}, {"hidden", h}, {"heads", heads}});
  const LayerShape attention = layer_called(model, "h.3.attention");
  const LayerShape mlp = layer_called(model, "h.3.mlp");
  CHECK(2 * (attention.stash_weight_grad + mlp.stash_weight_grad) == 32 * s * h);
  // The rest: the probabilities, and two statistics a row of each norm.
  CHECK(attention.stash_input_grad + mlp.stash_input_grad == heads * s * s + 4 * s);
}

TEST_CASE("GPT's options make the model they say") {
  const std::int64_t l = 24, h = 1024, s = 512, v = 1000;
  const ModelShape model =
      model_shape("gpt", {{"layers", l}, {"hidden", h}, {"heads", 16}, {"seq", s}, {"vocab", v}});
  CHECK(model.layers.size() == 1 + 2 * 24 + 2);
  CHECK(model.parameters == l * (12 * h * h + 13 * h) + (v + s) * h + 2 * h);
  CHECK(model.input == s);
  CHECK(layer_called(model, "head").parameters == 0);
  CHECK(layer_called(model, "head").weights == v * h);
}

TEST_CASE("GPT's heads are 64 wide unless told otherwise or hidden does not allow it") {
  const auto gpt = [](const ShapeOptions& options) { return model_shape("gpt", options); };
  CHECK(gpt({{"hidden", 1024}}) == gpt({{"hidden", 1024}, {"heads", 16}}));
  CHECK(gpt({{"hidden", 1024}}) != gpt({{"hidden", 1024}, {"heads", 8}}));
  CHECK(gpt({}) == gpt({{"hidden", 768}, {"heads", 12}}));
  CHECK(gpt({{"hidden", 96}}) == gpt({{"hidden", 96}, {"heads", 12}}));
  CHECK_THROWS_WITH_AS(gpt({{"hidden", 100}}), doctest::Contains("100 is not one of 12"),
                       UsageError);
}

TEST_CASE("names, options and numbers that do not fit are refused with the nearest that do") {
  CHECK_THROWS_WITH_AS(model_shape("resnet51"), doctest::Contains("resnet50"), UsageError);
  CHECK_THROWS_WITH_AS(model_shape("gpt", {{"layer", 3}}), doctest::Contains("\"layers\""),
                       UsageError);
  CHECK_THROWS_WITH_AS(model_shape("vgg16", {{"layers", 3}}), doctest::Contains("it has none"),
                       UsageError);
  CHECK_THROWS_WITH_AS(model_shape("gpt", {{"heads", 7}}), doctest::Contains("multiple of heads"),
                       UsageError);
  CHECK_THROWS_WITH_AS(model_shape("gpt", {{"layers", 0}}), doctest::Contains("from 1 to"),
                       UsageError);
  CHECK_THROWS_WITH_AS(model_shape("gpt", {{"seq", 1LL << 40}}), doctest::Contains("from 1 to"),
                       UsageError);
}

}  // namespace
}  // namespace stageline::shapes_tests
