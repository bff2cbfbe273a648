// Does the roofline price shapes as it says?
#include "cost_models/roofline.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/base/errors.hpp"

namespace stageline::roofline_tests {
namespace {

DeviceKind h100_like() {
  DeviceKind kind;
  kind.name = "h100";
  kind.title = "NVIDIA H100 SXM5 80 GB";
  kind.memory_bandwidth = {3'350'000'000'000};
  kind.peak = {{"fp32", 66.9e12}, {"tf32", 494.7e12}, {"bf16", 989.4e12}};
  return kind;
}

DeviceKind gtx1060_like() {
  DeviceKind kind;
  kind.name = "gtx1060";
  kind.memory_bandwidth = {192'000'000'000};
  kind.peak = {{"fp32", 4.375e12}};
  return kind;
}

// A gigabyte and a gigaflop a second: one byte or FLOP a nanosecond.
DeviceKind unit_device() {
  DeviceKind kind;
  kind.name = "unit";
  kind.memory_bandwidth = {1'000'000'000};
  kind.peak = {{"fp32", 1e9}, {"bf16", 1e9}};
  return kind;
}

// Two layers on paper: a linear 10 → 20 without bias and a ReLU, with the passes of each.
ModelShape paper_model() {
  Primitive linear;
  linear.kind = PrimitiveKind::linear;
  linear.forward = {400, 10, 20, 200, 0};
  linear.input_grad = {400, 20, 10, 200, 0};
  linear.weight_grad = {400, 30, 0, 0, 200};
  linear.weights = 200;
  Primitive relu;
  relu.kind = PrimitiveKind::relu;
  relu.forward = {20, 20, 20};
  relu.input_grad = {20, 40, 20};
  LayerShape layer;
  layer.name = "fc";
  layer.kind = "linear";
  layer.ops = {linear, relu};
  layer.output = {20};
  layer.weights = layer.parameters = 200;
  layer.stash_weight_grad = 10;
  layer.stash_gradient = 20;
  ModelShape model;
  model.name = "paper";
  model.sample = "image";
  model.layers = {layer};
  model.input = 10;
  model.parameters = 200;
  model.usual_batch = 4;
  model.usual_optimizer = "momentum";
  return model;
}

Time nanoseconds(std::int64_t count) { return Time{1000 * count}; }

// Speed-up bound of two devices that share forward + backward, cut behind `position` layers.
double cut_bound(const Model& model, std::size_t position) {
  double before = 0, all = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const double time = to_seconds(model.layers[i].forward + model.layers[i].backward);
    all += time;
    if (i < position) before += time;
  }
  return all / std::max(before, all - before);
}

TEST_CASE("a layer on paper costs what a pencil says, to the picosecond") {
  const Model model = roofline(paper_model(), unit_device(), {.batch = 4, .dtype = "fp32"});
  const Layer& layer = model.layers.at(0);
  // linear F: 1600 FLOPs against 4·(30·4 + 200) = 1280 bytes; ReLU F: 4·160 bytes
  CHECK(layer.forward == nanoseconds(1600 + 640));
  CHECK(layer.input_grad == nanoseconds(1600 + 960));
  CHECK(layer.weight_grad == nanoseconds(1600));
  CHECK(layer.backward == layer.input_grad + layer.weight_grad);
  CHECK(layer.update == nanoseconds(200 * 20));  // read w, g, m; write w, m
  CHECK(layer.weights == Bytes{800});
  CHECK(layer.gradients == Bytes{800});
  CHECK(layer.optimizer_state == Bytes{800});
  CHECK(layer.output == Bytes{320});
  CHECK(layer.stash_input_grad == Bytes{0});
  CHECK(layer.stash_weight_grad == Bytes{160});
  CHECK(layer.stash_gradient == Bytes{320});
  CHECK(layer.workspace == Bytes{0});
  CHECK(model.input == Bytes{160});
  CHECK(model.batch == 4);
  CHECK(model.sample == "image");
}

TEST_CASE("where bytes outlast FLOPs the bytes count") {
  const Model model = roofline(paper_model(), unit_device(), {.batch = 1, .dtype = "fp32"});
  CHECK(model.layers[0].forward == nanoseconds(4 * 230 + 4 * 40));  // 920 bytes against 400 FLOPs
}

TEST_CASE("efficiency stretches every time and overhead is paid by the op") {
  const ModelShape shape = paper_model();
  const RooflineOptions half{.batch = 4, .dtype = "fp32", .efficiency = 0.5};
  CHECK(roofline(shape, unit_device(), half).layers[0].forward == nanoseconds(2 * 2240));
  const RooflineOptions launch{.batch = 4, .dtype = "fp32", .overhead = nanoseconds(7)};
  const Layer launched = roofline(shape, unit_device(), launch).layers[0];
  CHECK(launched.forward == nanoseconds(2240 + 2 * 7));
  CHECK(launched.weight_grad == nanoseconds(1600 + 7));  // a ReLU has no W
  CHECK(launched.update == nanoseconds(4000 + 7));
}

TEST_CASE("on a large GPU a convolution is bound by arithmetic and a ReLU by memory") {
  ModelShape shape = model_shape("vgg16");
  LayerShape conv = shape.layers.at(6);
  REQUIRE(conv.name == "conv3_1");
  LayerShape relu = conv;
  conv.ops = {conv.ops[0]};
  relu.ops = {relu.ops[1]};
  REQUIRE(relu.ops[0].kind == PrimitiveKind::relu);
  shape.layers = {conv, relu};
  const Model base = roofline(shape, h100_like(), {});
  DeviceKind kind = h100_like();
  kind.memory_bandwidth.bytes_per_second *= 2;
  const Model wider = roofline(shape, kind, {});
  kind = h100_like();
  for (PeakRate& peak : kind.peak) peak.flops *= 2;
  const Model faster = roofline(shape, kind, {});
  CHECK(wider.layers[0].forward == base.layers[0].forward);
  CHECK(to_seconds(faster.layers[0].forward) ==
        doctest::Approx(to_seconds(base.layers[0].forward) / 2));
  CHECK(faster.layers[1].forward == base.layers[1].forward);
  CHECK(to_seconds(wider.layers[1].forward) ==
        doctest::Approx(to_seconds(base.layers[1].forward) / 2));
}

TEST_CASE("two-byte numbers halve the bytes, and training state with Adam is 16 bytes a weight") {
  for (const char* name : {"resnet50", "gpt"}) {
    const ModelShape shape = model_shape(name);
    const Model wide = roofline(shape, h100_like(), {.dtype = "fp32", .optimizer = "adam"});
    const Model narrow = roofline(shape, h100_like(), {.dtype = "bf16", .optimizer = "adam"});
    CHECK(wide.input == narrow.input * 2);
    for (std::size_t i = 0; i < wide.layers.size(); ++i) {
      const Layer& w = wide.layers[i];
      const Layer& n = narrow.layers[i];
      CAPTURE(w.name);
      CHECK(w.output == n.output * 2);
      CHECK(w.weights == n.weights * 2);
      CHECK(w.gradients == n.gradients * 2);
      CHECK(w.stash_input_grad == n.stash_input_grad * 2);
      CHECK(w.stash_weight_grad == n.stash_weight_grad * 2);
      const Bytes all{16 * shape.layers[i].weights};
      CHECK(w.weights + w.gradients + w.optimizer_state == all);
      CHECK(n.weights + n.gradients + n.optimizer_state == all);
      CHECK(n.forward <= w.forward);
    }
  }
}

TEST_CASE("bytes that the optimizer moves set the time of the update") {
  for (const auto& [optimizer, bytes] :
       {std::pair<const char*, int>{"sgd", 12}, {"momentum", 20}, {"adam", 28}}) {
    for (const char* dtype : {"fp32", "bf16"}) {
      const Model model =
          roofline(paper_model(), unit_device(), {.dtype = dtype, .optimizer = optimizer});
      CHECK(model.layers[0].update == nanoseconds(200 * bytes));
    }
  }
}

TEST_CASE(
    "FLOPs alone cap the CIFAR nets at 1.5, and counting bytes lifts the cap above what was "
    "measured") {
  struct Row {
    const char* name;
    std::size_t position;
    double published;  // speed-up on two GPUs, doi 10.1155/2021/3839543, table 5
    double by_flops;
    double by_roofline;
  };
  DeviceKind no_memory_limit = gtx1060_like();
  no_memory_limit.memory_bandwidth = Bandwidth::unlimited();
  for (const Row& row :
       {Row{"resnet56", 19, 1.65, 1.52, 1.86}, Row{"resnet110", 37, 1.73, 1.51, 1.84},
        Row{"resnet224", 75, 1.81, 1.50, 1.83}, Row{"resnet362", 121, 1.82, 1.50, 1.83}}) {
    CAPTURE(row.name);
    ModelShape shape = model_shape(row.name);
    const Model model = roofline(shape, gtx1060_like(), {});
    CHECK(model.batch == 128);
    const double with_bytes = cut_bound(model, row.position);
    CHECK(std::abs(with_bytes - row.by_roofline) < 0.005);
    CHECK(with_bytes > row.published);
    // Products only: what a count of multiply-accumulates sees.
    for (LayerShape& layer : shape.layers) {
      const auto is_product = [](const Primitive& op) {
        return op.kind == PrimitiveKind::conv || op.kind == PrimitiveKind::linear;
      };
      std::vector<Primitive> products;
      std::copy_if(layer.ops.begin(), layer.ops.end(), std::back_inserter(products), is_product);
      layer.ops = products;
    }
    const double by_flops = cut_bound(roofline(shape, no_memory_limit, {}), row.position);
    CHECK(std::abs(by_flops - row.by_flops) < 0.005);
    CHECK(by_flops < row.published);
  }
}

TEST_CASE("the provenance says estimate, device, dtype, optimizer and efficiency") {
  const Provenance p = roofline(model_shape("gpt"), h100_like(), {}).provenance;
  CHECK(p.origin == Origin::estimated);
  CHECK(p.device == "NVIDIA H100 SXM5 80 GB");
  CHECK(p.method == "estimated: roofline, a lower bound, bf16, adam, efficiency 1");
  CHECK(p.notes.size() == 2);
  const Provenance half =
      roofline(model_shape("vgg11"), gtx1060_like(), {.efficiency = 0.5}).provenance;
  CHECK(half.method == "estimated: roofline, fp32, momentum, efficiency 0.5");
  CHECK(half.device == "gtx1060");
}

TEST_CASE("options that do not fit are refused") {
  const ModelShape shape = model_shape("resnet18");
  const auto priced = [&](const RooflineOptions& options) {
    return roofline(shape, h100_like(), options);
  };
  CHECK_THROWS_WITH_AS(priced({.dtype = "bf61"}), doctest::Contains("\"bf16\""), UsageError);
  CHECK_THROWS_WITH_AS(priced({.dtype = "fp16"}), doctest::Contains("fp32, tf32, bf16"),
                       UsageError);
  CHECK_THROWS_WITH_AS(priced({.optimizer = "adamw"}), doctest::Contains("\"adam\""), UsageError);
  CHECK_THROWS_WITH_AS(priced({.batch = -1}), doctest::Contains("at least 1"), UsageError);
  for (const double efficiency : {0.0, -1.0, 1.5, std::nan("")}) {
    CHECK_THROWS_WITH_AS(priced({.efficiency = efficiency}), doctest::Contains("at most 1"),
                         UsageError);
  }
  CHECK_THROWS_WITH_AS(priced({.overhead = Time{-1}}), doctest::Contains("negative"), UsageError);
  DeviceKind broken = h100_like();
  broken.peak[0].flops = 0;
  CHECK_THROWS_WITH_AS(roofline(shape, broken, {.dtype = "fp32"}), doctest::Contains("positive"),
                       UsageError);
}

TEST_CASE("numbers beyond 64 bits are refused, not wrapped") {
  const ModelShape large =
      model_shape("gpt", {{"layers", 1}, {"hidden", 65536}, {"heads", 65536}, {"seq", 1 << 20}});
  CHECK_THROWS_WITH_AS(roofline(large, h100_like(), {.batch = 1 << 30}),
                       doctest::Contains("at most 100000 s"), UsageError);
  DeviceKind quick = h100_like();
  quick.memory_bandwidth = Bandwidth::unlimited();
  quick.peak = {{"bf16", 1e30}};
  CHECK_THROWS_WITH_AS(roofline(large, quick, {.batch = 1 << 30}), doctest::Contains("64 bits"),
                       UsageError);
}

TEST_CASE("a priced model is spelled model:NAME@DEVICE and its options") {
  const std::vector<DeviceKind> kinds = {h100_like(), gtx1060_like()};
  CHECK(priced_model("model:resnet50@h100", kinds) ==
        roofline(model_shape("resnet50"), h100_like(), {}));
  CHECK(priced_model("resnet50@gtx1060", kinds).name == "resnet50");
  CHECK(priced_model("resnet50@gtx1060", kinds).batch == 32);
  CHECK(priced_model("model:gpt@h100,layers=2,hidden=128,heads=4,batch=3,dtype=tf32,optimizer=sgd,"
                     "efficiency=0.5,overhead=5us",
                     kinds) ==
        roofline(model_shape("gpt", {{"layers", 2}, {"hidden", 128}, {"heads", 4}}), h100_like(),
                 {.batch = 3,
                  .dtype = "tf32",
                  .optimizer = "sgd",
                  .efficiency = 0.5,
                  .overhead = nanoseconds(5000)}));
}

TEST_CASE("a misspelled priced model is answered with what would do") {
  const std::vector<DeviceKind> kinds = {h100_like(), gtx1060_like()};
  const auto refused = [&](const std::string& spec, const char* hint) {
    CAPTURE(spec);
    CHECK_THROWS_WITH_AS(priced_model(spec, kinds), doctest::Contains(hint), UsageError);
  };
  refused("resnet50", "one of h100, gtx1060");
  refused("resnet50@", "one of h100, gtx1060");
  refused("resnet50,batch=3", "one of h100, gtx1060");
  refused("resnet5o@h100", "did you mean \"resnet50\"");
  refused("resnet50@h10", "did you mean \"h100\"");
  refused("resnet50@h100,bach=3", "did you mean \"batch\"");
  refused("resnet50@h100,layers=3", "no option 'layers'");
  refused("resnet50@h100,batch=0", "a whole number from 1");
  refused("resnet50@h100,batch=3x", "a whole number from 1");
  refused("resnet50@h100,batch=99999999999", "a whole number from 1");
  refused("resnet50@h100,batch", "key=value");
  refused("resnet50@h100,,batch=2", "key=value");
  refused("resnet50@h100,batch=2,batch=3", "appears twice");
  refused("resnet50@h100,efficiency=", "above 0");
  refused("resnet50@h100,overhead=5", "overhead");
  refused("", "no model is called ''");
}

TEST_CASE("a shape is called by its name and options alone") {
  CHECK(parse_shape("resnet50") == model_shape("resnet50"));
  CHECK(parse_shape("gpt,layers=2,seq=64") == model_shape("gpt", {{"layers", 2}, {"seq", 64}}));
  const auto refused = [&](const std::string& spec, const char* hint) {
    CAPTURE(spec);
    CHECK_THROWS_WITH_AS(parse_shape(spec), doctest::Contains(hint), UsageError);
  };
  refused("resnet5o", "did you mean \"resnet50\"");
  refused("gpt,layers=0", "a whole number from 1");
  refused("gpt,layer=2", "did you mean \"layers\"");
  CHECK(optimizer_called("adam") == Optimizer::adam);
  CHECK_THROWS_WITH_AS(optimizer_called("adm"), doctest::Contains("did you mean"), UsageError);
  // Trained, but without a price.
  CHECK(trained_optimizer_called("muon") == Optimizer::muon);
  CHECK_THROWS_WITH_AS(optimizer_called("muon"),
                       doctest::Contains("there are sgd, momentum, adam)"), UsageError);
}

}  // namespace
}  // namespace stageline::roofline_tests
