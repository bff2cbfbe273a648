// Does the native trace format say what was meant, and give back what it was given?
#include <algorithm>
#include <random>

#include "tests/text.hpp"
#include "tests/traces/support.hpp"
#include "traces/traces.hpp"

namespace stageline::native_tests {
namespace {

Time us(double microseconds) { return from_seconds(microseconds / 1e6); }

// The fenced example of a format in traces/README.md.
std::string readme_example(const std::string& format) {
  const std::string page = source_text("traces/README.md");
  const std::size_t inside = page.find("\"format\": \"" + format);
  REQUIRE(inside != std::string::npos);
  const std::size_t begin = page.rfind("```json\n", inside) + 8;
  return page.substr(begin, page.find("```", inside) - begin);
}

// A model whose every field is drawn at random, at `sizes` batch sizes; layers in topological
// order.
std::vector<Model> random_models(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  const auto word = [&] {
    static const std::vector<std::string> words{"conv", "a \"b\" \\", "ü/~", "x\ty\n", "层", "z"};
    return words[below(words.size())] + std::to_string(below(1000));
  };
  const auto time = [&] {
    return Time{static_cast<std::int64_t>(below(3) == 0 ? 0 : random() >> (8 + below(50)))};
  };
  const auto bytes = [&] {
    return Bytes{static_cast<std::int64_t>(below(3) == 0 ? 0 : random() >> (2 + below(60)))};
  };
  std::vector<Model> models(1 + below(4));
  Model common;
  common.name = word();
  common.sample = below(2) == 0 ? "" : word();
  common.provenance.origin = static_cast<Origin>(below(3));
  if (below(2) == 0) common.provenance.device = word();
  if (below(2) == 0) common.provenance.software = word();
  if (below(2) == 0) common.provenance.settings = word();
  if (below(2) == 0) common.provenance.method = word();
  if (below(2) == 0) common.provenance.source = word();
  if (below(2) == 0) common.provenance.date = "2024-01-01";
  for (std::uint64_t n = below(3); n > 0; --n) common.provenance.notes.push_back(word());
  if (below(2) == 0) {
    common.sharding.tensor = 1 + static_cast<int>(below(8));
    common.sharding.context = 1 + static_cast<int>(below(3));
    common.sharding.expert = 1 + static_cast<int>(below(3));
    common.sharding.sequence = common.sharding.tensor > 1 && below(2) == 0;
    if (below(2) == 0) common.sharding.expert_tensor = common.sharding.tensor + 1;
  }
  const auto exchange = [&] {
    LayerCollective collective;
    collective.kind = all_collective_kinds[below(all_collective_kinds.size())];
    collective.group = all_dimensions[below(3)];
    collective.forward = static_cast<int>(below(3));
    collective.input_grad = static_cast<int>(below(3));
    collective.weight_grad = collective.forward + collective.input_grad == 0 ? 1 : 0;
    return collective;
  };
  const int layers = 1 + static_cast<int>(below(7));
  for (int to = 1; to < layers; ++to) {
    for (int from = 0; from < to; ++from) {
      if (below(3) == 0) common.edges.push_back({from, to});
    }
  }
  std::sort(common.edges.begin(), common.edges.end());
  for (int i = 0; i < layers; ++i) {
    Layer layer;
    layer.name = word() + "." + std::to_string(i);
    layer.kind = word();
    layer.weights = bytes();
    if (i > 0 && below(3) == 0) layer.tied_weights = Bytes{layer.weights.count / 2};
    layer.gradients = below(2) == 0 ? layer.weights : bytes();
    layer.optimizer_state = bytes();
    layer.parameters = bytes().count;
    layer.memory_bound = below(3) == 0;
    for (std::uint64_t n = below(4); n > 1; --n) layer.collectives.push_back(exchange());
    if (below(2) == 0) {
      layer.expert_parameters = layer.parameters - layer.parameters / 3;
    }
    common.layers.push_back(layer);
  }
  if (below(2) == 0) {
    common.tokens = 1 + static_cast<std::int64_t>(below(1'000'000));
    common.parameters = 1 + bytes().count;
    common.peak_flops = static_cast<double>(1 + below(1'000'000)) * 1e9 / 7;
  }
  int batch = 0;
  const bool whole = below(2) == 0;
  for (Model& model : models) {
    model = common;
    if (whole) {
      model.whole = {1 + static_cast<int>(below(1000)), time(), time(), time(), time(), time()};
    }
    batch += 1 + static_cast<int>(below(64));
    model.batch = models.size() == 1 && below(3) == 0 ? 0 : batch;
    model.input = bytes();
    for (Layer& layer : model.layers) {
      layer.forward = time();
      layer.input_grad = time();
      layer.weight_grad = time();
      layer.lone_weight_grad = time();
      layer.backward = below(2) == 0 ? layer.input_grad + layer.weight_grad : time();
      layer.update = time();
      layer.forward_spread = time();
      layer.input_grad_spread = time();
      layer.weight_grad_spread = time();
      layer.backward_spread = time();
      layer.update_spread = time();
      layer.output = bytes();
      layer.stash_input_grad = bytes();
      layer.stash_weight_grad = bytes();
      layer.stash_gradient = bytes();
      layer.workspace = bytes();
      layer.selective_forward = time();
      layer.selective_stash = bytes();
      layer.forward_flops = bytes().count;
      layer.backward_flops = bytes().count;
      layer.selective_flops = bytes().count;
      for (LayerCollective& collective : layer.collectives) collective.bytes = bytes();
    }
  }
  return models;
}

}  // namespace

TEST_CASE("the example of the README reads as the README says") {
  const std::vector<Model> models = read_trace(readme_example("stageline-trace"), "README.md");
  REQUIRE(models.size() == 2);
  CHECK(models[0].batch == 16);
  CHECK(models[1].batch == 32);
  CHECK(models[0].sample == "image");
  CHECK(models[1].input == Bytes{3211264});
  CHECK(models[0].provenance.origin == Origin::synthetic);
  CHECK(models[0].provenance.notes.size() == 1);
  CHECK(models[0].provenance.settings == "fp32, 1 thread, momentum");
  CHECK(models[0].provenance.software.empty());
  CHECK(models[0].whole == WholeRun{20, us(119.5), us(130.25), us(3.5), us(2), us(0.75)});
  CHECK(models[1].whole == WholeRun{20, us(225), us(246.5), us(3.5), us(3.5), us(1)});
  CHECK(models[0].edges == std::vector<LayerEdge>{{0, 1}, {0, 2}, {1, 2}});
  const Layer& conv = models[1].layers.at(0);
  CHECK(conv.forward == us(190.25));
  CHECK(conv.backward == us(230));
  CHECK(conv.update == us(3.5));
  CHECK(conv.gradients == conv.weights);
  CHECK(conv.optimizer_state == Bytes{294912});
  CHECK(conv.stash_weight_grad == Bytes{3211264});
  CHECK(conv.workspace == Bytes{4194304});
  CHECK(conv.parameters == 36864);
  const Layer& add = models[1].layers.at(2);
  CHECK(add.forward == Time{19'000'001});
  CHECK(add.backward == us(0.5));
}

TEST_CASE("what the writer wrote is written again byte for byte") {
  const std::string example = readme_example("stageline-trace");
  CHECK(write_trace(read_trace(example, "README.md")) == example);
  for (const Bundled& bundled : bundled_traces()) {
    CAPTURE(bundled.name);
    const std::string text(bundled.text);
    CHECK(write_trace(read_trace(text, std::string(bundled.name))) == text);
  }
}

TEST_CASE("the bundled uniform8 is the uniform model with its defaults") {
  const auto& traces = bundled_traces();
  const auto found = std::find_if(traces.begin(), traces.end(),
                                  [](const Bundled& b) { return b.name == "uniform8"; });
  REQUIRE(found != traces.end());
  CHECK(read_trace(std::string(found->text), "uniform8") ==
        std::vector<Model>{uniform_model("uniform:layers=8")});
}

TEST_CASE("reading what was written gives the same models, whatever they hold") {
  std::mt19937_64 random(20240501);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Model> models = random_models(random);
    const std::string text = write_trace(models);
    CAPTURE(text);
    const std::vector<Model> again = read_trace(text, "random");
    REQUIRE(again == models);
    REQUIRE(write_trace(again) == text);
  }
}

TEST_CASE("times keep every picosecond, however long they are") {
  Model model = uniform_model("layers=1");
  for (const std::int64_t ps : {1LL, 999'999LL, 1'000'000LL, 9'007'199'254'740'993LL,
                                99'999'999'999'999'999LL, 100'000'000'000'000'000LL}) {
    model.layers[0].forward = Time{ps};
    CHECK(read_trace(write_trace({model}), "t")[0].layers[0].forward == Time{ps});
  }
}

TEST_CASE("decimals past the picosecond are rounded once, halves up") {
  const std::string text = write_trace({uniform_model("layers=1,forward=1ps")});
  const auto forward = [&](const std::string& number) {
    return read_trace(replaced(text, "0.000001", number), "t")[0].layers[0].forward.count();
  };
  CHECK(forward("0.0000014999999999999999999") == 1);
  CHECK(forward("0.0000015") == 2);
  CHECK(forward("0.0000004999999999999999999999") == 0);
  CHECK(forward("0.0000005") == 1);
  CHECK(forward("1.5e3") == 1'500'000'000);
  CHECK(forward("15E-1") == 1'500'000);
  CHECK(forward("1e-400") == 0);
  CHECK(forward("-0") == 0);
  CHECK(forward("-0.0") == 0);
}

TEST_CASE("layers that stand before what they read are put in order") {
  const std::string text = replaced(readme_example("stageline-trace"), R"(["conv1", "relu1"],
    ["conv1", "add"],
    ["relu1", "add"])",
                                    R"(["add", "relu1"], ["relu1", "conv1"])");
  const std::vector<Model> models = read_trace(text, "t");
  for (const Model& model : models) {
    CHECK(model.layers[0].name == "add");
    CHECK(model.layers[2].name == "conv1");
    CHECK(model.edges == std::vector<LayerEdge>{{0, 1}, {1, 2}});
  }
}

TEST_CASE("a trace without batch is of one unknown size") {
  Model model = uniform_model("layers=2");
  model.batch = 0;
  const std::string text = write_trace({model});
  CHECK(!contains(text, "\"batch\""));
  CHECK(read_trace(text, "t") == std::vector<Model>{model});
}

TEST_CASE("the whole run of a trace of one size is written as numbers, and left out when not run") {
  Model model = uniform_model("layers=1");
  CHECK(!contains(write_trace({model}), "\"whole\""));
  model.whole = {7, us(1), us(2.5), Time{}, us(0.25), us(0.125)};
  const std::string text = write_trace({model});
  CHECK(contains(text,
                 "  \"whole\": {\"samples\": 7,\n    \"forward_us\": 1, \"backward_us\": 2.5, "
                 "\"update_us\": 0, \"spread_us\": 0.25, \"noise_us\": 0.125},\n"));
  CHECK(read_trace(text, "t") == std::vector<Model>{model});
}

TEST_CASE("the spread of an update may be one number for all batch sizes, as the update") {
  const std::string text = replaced(readme_example("stageline-trace"), "\"update_us\": 3.5,",
                                    "\"update_us\": 3.5, \"update_spread_us\": 0.5,");
  for (const Model& model : read_trace(text, "t")) {
    CHECK(model.layers[0].update_spread == us(0.5));
    CHECK(model.layers[1].update_spread == Time{});
  }
}

TEST_CASE("what recomputation adds is read and written, and left out where it is not known") {
  std::vector<Model> models = read_trace(readme_example("stageline-trace"), "t");
  CHECK(!contains(write_trace(models), "recompute_us"));
  models[0].layers[0].recompute = us(60.5);
  models[1].layers[0].recompute = us(120);
  const std::string text = write_trace(models);
  CHECK(contains(text, "\"recompute_us\": [60.5, 120]"));
  CHECK(read_trace(text, "t") == models);
}

TEST_CASE("the layers of one rank state their degrees and collectives") {
  Model model = uniform_model("layers=2,batch=4");
  CHECK(!contains(write_trace({model}), "sharding"));
  CHECK(!contains(write_trace({model}), "collectives"));
  model.sharding = {8, 2, 1, true};
  model.layers[0].memory_bound = true;
  model.layers[1].selective_forward = us(2.5);
  model.layers[1].selective_stash = Bytes{7};
  model.layers[1].collectives = {
      {CollectiveKind::all_gather, Dimension::tensor, Bytes{16}, 1, 1, 1},
      {CollectiveKind::reduce_scatter, Dimension::context, Bytes{32}, 0, 2, 0}};
  const std::string text = write_trace({model});
  CAPTURE(text);
  CHECK(contains(text, "  \"sharding\": {\"tensor\": 8, \"context\": 2, \"sequence\": true},\n"));
  CHECK(contains(text, "\"memory_bound\": true}"));
  CHECK(contains(text, "\"selective_forward_us\": 2.5"));
  CHECK(contains(text, "\"selective_stash_bytes\": 7"));
  CHECK(contains(text,
                 ",\n     \"collectives\": [\n"
                 "       {\"kind\": \"all_gather\", \"group\": \"tp\", \"bytes\": 16, "
                 "\"forward\": 1, \"input_grad\": 1, \"weight_grad\": 1},\n"
                 "       {\"kind\": \"reduce_scatter\", \"group\": \"cp\", \"bytes\": 32, "
                 "\"input_grad\": 2}]}"));
  CHECK(read_trace(text, "t") == std::vector<Model>{model});
  model.sharding = {8, 2, 4, true, 1};
  model.layers[1].collectives[1].group = Dimension::expert_tensor;
  const std::string folded = write_trace({model});
  CHECK(contains(folded, "\"expert\": 4, \"sequence\": true, \"expert_tensor\": 1},\n"));
  CHECK(contains(folded, "\"group\": \"etp\""));
  CHECK(read_trace(folded, "t") == std::vector<Model>{model});
}

TEST_CASE("an all-to-all by a dispatcher states how it routes tokens") {
  Model model = uniform_model("layers=1,batch=4");
  model.sharding.expert = 64;
  const auto exchange = [](const TokenRouting& routing) {
    return LayerCollective{
        CollectiveKind::all_to_all, Dimension::expert, Bytes{64}, 1, 1, 0, routing};
  };
  model.layers[0].collectives = {exchange({"deepep", false, 8, 8, 4}),
                                 exchange({"deepep", true, 8, 8, 4}), exchange({})};
  const std::string text = write_trace({model});
  CAPTURE(text);
  CHECK(contains(text,
                 "\"input_grad\": 1, \"routing\": {\"dispatcher\": \"deepep\", \"combine\": "
                 "true, \"chosen\": 8, \"groups\": 8, \"chosen_groups\": 4}}"));
  CHECK(read_trace(text, "t") == std::vector<Model>{model});
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    try {
      read_trace(other, "t");
    } catch (const TraceError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  CHECK(contains(refused("\"chosen_groups\": 4", "\"chosen_groups\": 9"),
                 "a token's experts are in at most all 8 groups, not in 9"));
  CHECK(contains(refused("\"group\": \"ep\"", "\"group\": \"tp\""),
                 "tokens are routed by an all-to-all of \"ep\" alone"));
}

TEST_CASE("a collective says which ranks of a group it is among, and that they send messages") {
  Model model = uniform_model("layers=1,batch=4");
  model.sharding.context = 8;
  LayerCollective ring{CollectiveKind::all_gather, Dimension::context, Bytes{64}, 1, 1, 0};
  ring.hidden = 1;
  ring.forward_beside = ring.backward_beside = Time{1'000'000};
  ring.use = {4, true, 2};
  LayerCollective exchange{CollectiveKind::all_to_all, Dimension::context, Bytes{64}, 1, 1, 0};
  exchange.use = {4, false, 0};
  model.layers[0].collectives = {ring, exchange};
  const std::string text = write_trace({model});
  CAPTURE(text);
  CHECK(contains(text, "\"use\": {\"part\": 4, \"across\": true, \"blocks\": 2}, \"hidden\": 1"));
  CHECK(contains(text, "\"use\": {\"part\": 4}}"));
  CHECK(read_trace(text, "t") == std::vector<Model>{model});
  std::string without = text;
  without.replace(without.find("\"part\": 4, "), std::string("\"part\": 4, ").size(), "");
  CHECK(contains(test::complaint<TraceError>([&] { read_trace(without, "t"); }),
                 "says of how many ranks"));
}

TEST_CASE("a collective says which share of it products hide, and how long they take") {
  const auto with = [](int batch, std::int64_t bytes, Time beside) {
    Model model = uniform_model("layers=1");
    model.batch = batch;
    model.layers[0].collectives = {{CollectiveKind::all_gather,
                                    Dimension::tensor,
                                    Bytes{bytes},
                                    1,
                                    1,
                                    0,
                                    {},
                                    0.46,
                                    beside,
                                    Time{2'500'000}}};
    return model;
  };
  const std::vector<Model> models{with(1, 8, Time{1'000'000}), with(2, 16, Time{1'250'000})};
  const std::string text = write_trace(models);
  CHECK(contains(text,
                 "\"hidden\": 0.46, \"forward_beside_us\": [1, 1.25], "
                 "\"backward_beside_us\": 2.5}"));
  CHECK(read_trace(text, "t") == models);
}

TEST_CASE("a language model counts tokens, parameters and FLOPs") {
  Model model = uniform_model("layers=2,batch=4");
  for (const char* const key : {"tokens", "peak_flops", "expert_parameters", "forward_flops"}) {
    CHECK(!contains(write_trace({model}), key));
  }
  model.sample = "sequence";
  model.tokens = 8192;
  model.parameters = 70'553'706'496;
  model.peak_flops = 989e12;
  Layer& layer = model.layers[1];
  layer.parameters = 300;
  layer.expert_parameters = 200;
  layer.forward_flops = 1'000'000'007;
  layer.backward_flops = 2'000'000'014;
  layer.selective_flops = 5;
  const std::string text = write_trace({model});
  CAPTURE(text);
  CHECK(contains(text,
                 "  \"sample\": \"sequence\",\n  \"tokens\": 8192,\n  \"parameters\": "
                 "70553706496,\n  \"peak_flops\": 989000000000000,\n  \"batch\": 4,\n"));
  CHECK(contains(
      text,
      "\"parameters\": 300, \"expert_parameters\": 200,\n     \"forward_flops\": 1000000007, "
      "\"backward_flops\": 2000000014, \"selective_flops\": 5}"));
  CHECK(read_trace(text, "t") == std::vector<Model>{model});
  Model larger = model;
  larger.batch = 8;
  larger.layers[1].forward_flops *= 2;
  CHECK(contains(write_trace({model, larger}), "\"forward_flops\": [1000000007, 2000000014]"));
  CHECK(read_trace(write_trace({model, larger}), "t") == std::vector<Model>{model, larger});
  larger.tokens = 4096;
  CHECK(contains(usage_error_of([&] {
                   write_trace({model, larger});
                 }),
                 "at batch 8 differs from batch 4"));
}

TEST_CASE("every example of a trace in the README reads, and is written as it is") {
  const std::string page = source_text("traces/README.md");
  int examples = 0;
  for (std::size_t at = page.find("\"format\": \"stageline-trace"); at != std::string::npos;
       at = page.find("\"format\": \"stageline-trace", at + 1)) {
    const std::size_t begin = page.rfind("```json\n", at) + 8;
    const std::string example = page.substr(begin, page.find("```", at) - begin);
    CHECK(write_trace(read_trace(example, "README.md")) == example);
    ++examples;
  }
  CHECK(examples == 2);
}

TEST_CASE("a whole run without samples is not written") {
  Model small = uniform_model("layers=2,batch=1");
  Model large = uniform_model("layers=2,batch=2");
  small.whole.samples = 3;
  CHECK(contains(usage_error_of([&] {
                   write_trace({small, large});
                 }),
                 "has 0 samples at batch 2; a measured whole run needs at least 1"));
  small.whole = {0, us(1), us(1), us(1), us(1), us(1)};
  CHECK(contains(usage_error_of([&] { write_trace({small}); }), "has 0 samples at batch 1"));
}

TEST_CASE("models that differ in what stands once are not written as one trace") {
  Model small = uniform_model("layers=2,batch=1");
  Model large = uniform_model("layers=2,batch=2");
  CHECK(read_trace(write_trace({small, large}), "t") == std::vector<Model>{small, large});
  CHECK(contains(usage_error_of([&] {
                   write_trace({large, small});
                 }),
                 "must ascend (1 follows 2)"));
  CHECK(contains(usage_error_of([&] { write_trace({}); }), "at least one model"));
  const auto differ = [&] {
    return contains(usage_error_of([&] {
                      write_trace({small, large});
                    }),
                    "at batch 2 differs from batch 1");
  };
  large.sharding.tensor = 2;
  CHECK(differ());
  small.sharding = large.sharding;
  large.layers[0].collectives = {{CollectiveKind::all_reduce, Dimension::tensor, Bytes{8}, 1, 1}};
  CHECK(differ());
  small.layers[0].collectives = {{CollectiveKind::all_reduce, Dimension::tensor, Bytes{4}, 1, 1}};
  CHECK(!differ());
  large.layers[1].weights += Bytes{1};
  CHECK(differ());
}

}  // namespace stageline::native_tests
