// Does one rank of a transformer compute, keep and exchange what the papers say?
#include "cost_models/sharding.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "cost_models/roofline.hpp"
#include "cost_models/state_bytes.hpp"
#include "sim/base/errors.hpp"

namespace stageline::sharding_tests {
namespace {

constexpr double gibibyte = 1 << 30;

DeviceKind accelerator() {
  DeviceKind kind;
  kind.name = "h100";
  kind.memory_bandwidth = {3'350'000'000'000};
  kind.peak = {{"fp32", 66.9e12}, {"bf16", 989.4e12}};
  return kind;
}

Model priced(const std::string& options, const Sharding& sharding = {}) {
  return priced_model("model:gpt@h100," + options, {accelerator()}, sharding);
}

const Layer& layer_called(const Model& model, const std::string& name) {
  for (const Layer& layer : model.layers) {
    if (layer.name == name) return layer;
  }
  FAIL("no layer ", name);
  return model.layers.front();
}

// Of one block.
Bytes stash(const Model& model) {
  const Layer& attention = layer_called(model, "h.0.attention");
  const Layer& mlp = layer_called(model, "h.0.mlp");
  return attention.stash_input_grad + attention.stash_weight_grad + mlp.stash_input_grad +
         mlp.stash_weight_grad;
}

Bytes selective_stash(const Model& model) {
  return layer_called(model, "h.0.attention").selective_stash +
         layer_called(model, "h.0.mlp").selective_stash;
}

// Korthikanti et al. 2022, arXiv 2205.05198, figure 1: GiB of a GPU of the first stage.
struct Published {
  int batch, layers, hidden, heads, pipeline, chunks;
  double none, sequence, selective, both, full, parameters;
};
const std::vector<Published> published{
    {4, 48, 6144, 64, 1, 1, 59.25, 39.5625, 29.25, 9.5625, 4.5, 45.5625},
    {1, 96, 12288, 96, 8, 3, 66.84375, 41.4141, 37.78125, 12.3515625, 5.8125, 45.5625},
    {1, 105, 20480, 128, 35, 3, 114.0234, 66.5137, 70.5859, 23.0762, 10.8594, 31.6406},
    {1, 128, 25600, 160, 64, 1, 131.25, 76.5625, 81.25, 26.5625, 12.5, 32.9590},
};

TEST_CASE("activations of the first stage are those of the paper's figure, to the digit printed") {
  for (const Published& row : published) {
    CAPTURE(row.hidden);
    const std::string options = fmt::format(
        "layers=1,hidden={},heads={},seq=2048,vocab=51200,batch={},dtype=bf16,tp=8,"
        "dropout=yes",
        row.hidden, row.heads, row.batch);
    // 1F1B holds p micro-batches of L/p layers; interleaving more.
    const double p = row.pipeline;
    const double in_flight = row.chunks > 1 ? 1 + (p - 1) / (p * row.chunks) : 1;
    const auto gibibytes = [&](Bytes block) {
      return static_cast<double>(block.count) * row.layers * in_flight / gibibyte;
    };
    // The paper leaves out the statistics of the norms: two numbers a row, two norms a block.
    const Bytes statistics{std::int64_t{4} * 2 * 2048 * row.batch};
    const auto printed = [](double value, double shown) { return std::abs(value - shown) < 5e-5; };

    const Model tensor = priced(options);
    CHECK(printed(gibibytes(stash(tensor) - statistics), row.none));
    CHECK(printed(gibibytes(stash(tensor) - statistics - selective_stash(tensor)), row.selective));

    const Model sequence = priced(options + ",sp=yes");
    const Bytes divided{statistics.count / 8};
    CHECK(printed(gibibytes(stash(sequence) - divided), row.sequence));
    CHECK(printed(gibibytes(stash(sequence) - divided - selective_stash(sequence)), row.both));

    // Full recomputation keeps what the block reads.
    CHECK(printed(gibibytes(layer_called(tensor, "embedding").output), row.full));

    const std::int64_t weights =
        std::int64_t{12} * row.layers * row.hidden * row.hidden / (8 * row.pipeline);
    const StateBytes state = state_bytes(weights, find_precision("bf16"), Zero::none, 1);
    CHECK(printed(static_cast<double>(state.total().count) / gibibyte, row.parameters));
  }
}

TEST_CASE(
    "a block keeps A·(10 + 24/t + 5·a·s/(h·t)) bytes, and all of it over t with sequence "
    "parallelism") {
  const std::int64_t s = 512, h = 1024, a = 16, b = 3;
  const std::int64_t activation = s * b * h;
  for (const std::int64_t t : {1, 2, 4, 8}) {
    CAPTURE(t);
    const std::string options = fmt::format(
        "layers=1,hidden={},heads={},seq={},vocab=1024,batch={},dropout=yes,tp={}", h, a, s, b, t);
    const std::int64_t scores = 5 * a * s * s * b / t;
    const Bytes statistics{8 * s * b};
    const Model plain = priced(options);
    CHECK(stash(plain) == Bytes{activation * 10 + activation * 24 / t + scores} + statistics);
    CHECK(selective_stash(plain) == Bytes{scores});
    const Model sequence = priced(options + ",sp=yes");
    CHECK(stash(sequence) == Bytes{activation * 34 / t + scores} + Bytes{statistics.count / t});
    CHECK(sequence.sharding == Sharding{static_cast<int>(t), 1, 1, t > 1});
    CHECK(layer_called(sequence, "h.0.mlp").output == Bytes{2 * activation / t});
    CHECK(layer_called(plain, "h.0.mlp").output == Bytes{2 * activation});
  }
}

TEST_CASE("without dropout a block keeps two bytes less an element, and two fifths of the scores") {
  const std::string options = "layers=1,hidden=1024,heads=16,seq=512,vocab=1024,batch=3,tp=4";
  const Model plain = priced(options);
  const Model dropout = priced(options + ",dropout=yes");
  const std::int64_t scores = 16 / 4 * 512 * 512 * 3;
  CHECK(selective_stash(plain) == Bytes{2 * scores});
  CHECK(selective_stash(dropout) == Bytes{5 * scores});
  CHECK(stash(dropout) - stash(plain) == Bytes{2 * 512 * 1024 * 3 + 3 * scores});
  CHECK(layer_called(dropout, "embedding").stash_weight_grad -
            layer_called(plain, "embedding").stash_weight_grad ==
        Bytes{512 * 1024 * 3});
}

TEST_CASE("parameters are those of the tables") {
  struct Row {
    int layers, hidden, heads, seq, vocab;
    const char* billions;
    bool final_norm;
  };
  // SC21 (arXiv 2104.04473, equation 2, without the last norm), GPT-3, GPT-2 XL.
  for (const Row& row : {Row{24, 2304, 24, 2048, 51200, "1.6522", false},
                         Row{40, 6144, 48, 2048, 51200, "18.4497", false},
                         Row{48, 8192, 64, 2048, 51200, "39.0960", false},
                         Row{80, 12288, 96, 2048, 51200, "145.6222", false},
                         Row{128, 25600, 160, 2048, 51200, "1008.0387", false},
                         Row{96, 12288, 96, 2048, 51200, "174.6158", false},
                         Row{48, 1600, 25, 1024, 50257, "1.5576", true}}) {
    CAPTURE(row.billions);
    const ModelShape shape =
        parse_shape(fmt::format("gpt,layers={},hidden={},heads={},seq={},"
                                "vocab={}",
                                row.layers, row.hidden, row.heads, row.seq, row.vocab));
    const std::int64_t counted = shape.parameters - (row.final_norm ? 0 : 2 * row.hidden);
    CHECK(fmt::format("{:.4f}", static_cast<double>(counted) / 1e9) == row.billions);
  }
}

TEST_CASE("the ranks of a group hold the model once, but for norms, biases and places") {
  const ShapeOptions options{
      {"layers", 3}, {"hidden", 512}, {"heads", 8}, {"seq", 256}, {"vocab", 1024}};
  const auto weights = [](const ModelShape& shape) {
    std::int64_t sum = 0;
    for (const LayerShape& layer : shape.layers) sum += layer.weights;
    return sum;
  };
  const std::int64_t whole = weights(model_shape("gpt", options));
  const std::int64_t on_every_rank = 3 * 6 * 512 + 256 * 512 + 2 * 512;
  for (const int t : {2, 4, 8}) {
    for (const bool sequence : {false, true}) {
      const ModelShape rank =
          model_shape("gpt", options, {.sharding = {t, 1, 1, sequence}, .dropout = false});
      CHECK(t * weights(rank) - (t - 1) * on_every_rank == whole);
    }
  }
  const ModelShape context = model_shape("gpt", options, {.sharding = {1, 4}, .dropout = false});
  CHECK(weights(context) == whole);  // every rank has all of them
}

TEST_CASE("the ranks of a group share the products, and with sequence parallelism all work") {
  const ShapeOptions options{
      {"layers", 2}, {"hidden", 512}, {"heads", 8}, {"seq", 256}, {"vocab", 1024}};
  const auto flops = [](const ModelShape& shape, bool products) {
    std::int64_t sum = 0;
    for (const LayerShape& layer : shape.layers) {
      for (const Primitive& op : layer.ops) {
        const bool product = op.kind == PrimitiveKind::linear || op.kind == PrimitiveKind::matmul;
        if (product != products || op.kind == PrimitiveKind::embedding) continue;
        sum += op.forward.flops + op.input_grad.flops + op.weight_grad.flops;
      }
    }
    return sum;
  };
  const ModelShape whole = model_shape("gpt", options);
  for (const Sharding& sharding : {Sharding{2}, Sharding{8, 1, 1, true}, Sharding{1, 4},
                                   Sharding{4, 2}, Sharding{2, 8, 1, true}}) {
    CAPTURE(sharding.tensor);
    CAPTURE(sharding.context);
    const ModelShape rank = model_shape("gpt", options, {.sharding = sharding, .dropout = false});
    const std::int64_t ranks = std::int64_t{sharding.tensor} * sharding.context;
    CHECK(ranks * flops(rank, true) == flops(whole, true));
    if (sharding.sequence || sharding.tensor == 1) {
      CHECK(ranks * flops(rank, false) == flops(whole, false));
    } else {
      CHECK(ranks * flops(rank, false) > flops(whole, false));
    }
    CHECK(rank.input * sharding.context == whole.input);
  }
}

TEST_CASE("a block exchanges two tensors of M·h numbers forward and two backward") {
  const std::string options = "layers=2,hidden=512,heads=8,seq=256,vocab=1024,batch=4,tp=4";
  const Bytes rows{std::int64_t{2} * 4 * 256 * 512};
  const Model plain = priced(options);
  using Kind = CollectiveKind;
  using Exchange = std::vector<LayerCollective>;
  const Dimension tp = Dimension::tensor;
  const Exchange reduced{{Kind::all_reduce, tp, rows, 1, 1, 0}};
  CHECK(layer_called(plain, "h.1.attention").collectives == reduced);
  CHECK(layer_called(plain, "h.1.mlp").collectives == reduced);
  CHECK(layer_called(plain, "embedding").collectives ==
        Exchange{{Kind::all_reduce, tp, rows, 1, 0, 0}});
  CHECK(layer_called(plain, "norm").collectives.empty());
  // Three numbers of four bytes a row.
  CHECK(layer_called(plain, "head").collectives ==
        Exchange{{Kind::all_reduce, tp, rows, 0, 1, 0},
                 {Kind::all_reduce, tp, Bytes{4 * 4 * 256}, 3, 0, 0}});

  const Model sequence = priced(options + ",sp=yes");
  const Exchange gathered{{Kind::all_gather, tp, rows, 1, 1, 1},
                          {Kind::reduce_scatter, tp, rows, 1, 1, 0}};
  CHECK(layer_called(sequence, "h.0.attention").collectives == gathered);
  CHECK(layer_called(sequence, "h.0.mlp").collectives == gathered);
  CHECK(layer_called(sequence, "embedding").collectives ==
        Exchange{{Kind::reduce_scatter, tp, rows, 1, 0, 0}, {Kind::all_gather, tp, rows, 0, 0, 1}});
  for (const Layer& layer : priced("layers=2").layers) CHECK(layer.collectives.empty());
}

TEST_CASE("context parallelism moves the bytes of a ring of keys and values") {
  const std::int64_t c = 4, t = 2;
  const Model model = priced("layers=1,hidden=512,heads=8,seq=256,vocab=1024,batch=4,tp=2,cp=4");
  const std::int64_t rows = 4 * 256;  // of all ranks
  Bytes forward{};
  Bytes backward{};
  for (const LayerCollective& collective : layer_called(model, "h.0.attention").collectives) {
    if (collective.group != Dimension::context) continue;
    // What a rank sends of an all-gather or a reduce-scatter.
    const Bytes sent{collective.bytes.count * (c - 1) / c};
    forward += sent * collective.forward;
    backward += sent * (collective.input_grad + collective.weight_grad);
  }
  // c - 1 sends of the rank's own keys and values; backward as many of them and of their gradients.
  const Bytes ring{(c - 1) * 2 * (rows / c) * (512 / t) * 2};
  CHECK(forward == ring);
  CHECK(backward == ring * 2);
  CHECK(layer_called(model, "h.0.mlp").collectives ==
        std::vector<LayerCollective>{
            {CollectiveKind::all_reduce, Dimension::tensor, Bytes{2 * rows / c * 512}, 1, 1, 0}});
}

TEST_CASE("selective recomputation repeats scores, softmax and context alone") {
  const Model model = priced("layers=1,hidden=1024,heads=16,seq=2048,batch=2");
  ModelShape shape = parse_shape("gpt,layers=1,hidden=1024,heads=16,seq=2048");
  LayerShape& attention = shape.layers.at(1);
  attention.ops = {attention.ops.at(2), attention.ops.at(3), attention.ops.at(4)};
  attention.selective_begin = attention.selective_end = 0;
  const Model core = roofline(shape, accelerator(), {.batch = 2});
  CHECK(layer_called(model, "h.0.attention").selective_forward == core.layers.at(1).forward);
  CHECK(layer_called(model, "h.0.mlp").selective_forward == Time{});
  CHECK(core.layers.at(1).selective_forward == Time{});
}

TEST_CASE("memory bounds norms and look-ups, arithmetic bounds large products") {
  const Model model = priced("layers=1,hidden=8192,heads=64,seq=512,batch=4");
  CHECK(layer_called(model, "embedding").memory_bound);
  CHECK(layer_called(model, "norm").memory_bound);
  CHECK_FALSE(layer_called(model, "h.0.mlp").memory_bound);
  CHECK_FALSE(layer_called(model, "head").memory_bound);
}

TEST_CASE("degrees may be stated by the model, by a flag, or by both alike") {
  const std::string options = "layers=1,hidden=512,heads=8,vocab=1024";
  CHECK(priced(options + ",tp=4,cp=2") == priced(options, {4, 2}));
  CHECK(priced(options + ",tp=4,sp=yes") == priced(options + ",tp=4", {4, 1, 1, true}));
  CHECK(priced(options + ",tp=1,cp=1,sp=no,dropout=no") == priced(options));
  Model nothing_to_divide = priced(options + ",sp=yes");
  REQUIRE_FALSE(nothing_to_divide.provenance.notes.empty());
  CHECK(nothing_to_divide.provenance.notes.back() == "sp=yes has no effect without tp");
  nothing_to_divide.provenance.notes.pop_back();
  CHECK(nothing_to_divide == priced(options));
  CHECK_THROWS_WITH_AS(priced(options + ",tp=4", {8}), doctest::Contains("tp=4, and --tp is 8"),
                       UsageError);
}

TEST_CASE("what the ranks cannot share equally is refused with both numbers") {
  const auto refused = [](const std::string& options, const char* hint) {
    CAPTURE(options);
    CHECK_THROWS_WITH_AS(priced(options), doctest::Contains(hint), UsageError);
  };
  refused("tp=8", "heads must be a multiple of tp, and 12 is not one of 8");
  refused("hidden=1024,tp=8", "vocab must be a multiple of tp, and 50257 is not one of 8");
  refused("hidden=1024,tp=8", "it is vocab=51200");
  refused("cp=3", "seq must be a multiple of cp, and 1024 is not one of 3");
  refused("seq=1020,vocab=51200,cp=2,tp=4,sp=yes", "and 1020 is not one of 8");
  refused("ep=4", "no experts that ep 4 could divide");
  refused("tp=0", "a whole number from 1");
  refused("tp=x", "a whole number from 1");
  refused("sp=1", "sp must be yes or no, not '1'");
  refused("dropot=yes", "did you mean \"dropout\"");
  CHECK_THROWS_WITH_AS(priced_model("resnet50@h100,tp=2", {accelerator()}),
                       doctest::Contains("resnet50 cannot be divided by tp 2"), UsageError);
  CHECK_THROWS_WITH_AS(priced_model("resnet50@h100", {accelerator()}, {1, 4}),
                       doctest::Contains("cp 4"), UsageError);
}

TEST_CASE("a run's degrees must be those that divide the model") {
  Model model;
  model.name = "m";
  model.sharding = {4, 2, 1, true};
  Degrees degrees;
  degrees.tensor = 4;
  degrees.context = 2;
  CHECK_NOTHROW(check_sharding(model, degrees));
  degrees.tensor = 8;
  CHECK_THROWS_WITH_AS(check_sharding(model, degrees), doctest::Contains("tp 4, and --tp is 8"),
                       UsageError);
  degrees.tensor = 4;
  degrees.context = 1;
  CHECK_THROWS_WITH_AS(check_sharding(model, degrees), doctest::Contains("cp 2, and --cp is 1"),
                       UsageError);
  degrees.context = 2;
  degrees.expert_tensor = 4;
  CHECK_NOTHROW(check_sharding(model, degrees));
  degrees.expert_tensor = 1;
  CHECK_THROWS_WITH_AS(check_sharding(model, degrees),
                       doctest::Contains("by etp 4, and --etp is 1"), UsageError);
  model.sharding.expert_tensor = 1;
  CHECK_NOTHROW(check_sharding(model, degrees));
  degrees.expert = 8;
  CHECK_THROWS_WITH_AS(check_sharding(model, degrees),
                       doctest::Contains("of ep 1, without experts, and --ep is 8"), UsageError);
}

}  // namespace
}  // namespace stageline::sharding_tests
