// Is a language model the sum of its kernels, and does a rank hold, keep and exchange its part?
#include "cost_models/transformers/language_model.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "sim/base/errors.hpp"

namespace stageline::language_model_tests {
namespace {

DeviceKind a100_80gb() {
  DeviceKind kind;
  kind.name = "a100";
  kind.title = "NVIDIA A100 SXM 80 GB";
  kind.source = "data sheet";
  kind.memory_bandwidth = {2'039'000'000'000};
  kind.peak = {{"fp32", 19.5e12}, {"bf16", 312e12}, {"fp16", 312e12}, {"fp8", 624e12}};
  return kind;
}

KernelRates fitted_rates() {
  KernelRates rates = find_chip_rates("a100")->rates;
  rates.step = 0;
  return rates;
}

// As Megatron-LM trained GPT: layer norms, biases, learned places, MLPs of width 4·hidden.
TransformerConfig gpt_of(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  TransformerConfig config;
  config.name = "gpt";
  config.layers = layers;
  config.hidden = hidden;
  config.heads = config.kv_heads = heads;
  config.head_width = hidden / heads;
  config.ffn = 4 * hidden;
  config.vocab = 51200;
  config.tied = true;
  config.norm = NormKind::layer;
  config.query_key_value_bias = config.projection_bias = config.mlp_bias = true;
  config.positions = Positions::learned;
  config.places = config.seq = 2048;
  return config;
}

LanguageForm of_2021(std::int64_t batch, int tensor) {
  LanguageForm form;
  form.batch = batch;
  form.sharding.tensor = tensor;
  form.attention = AttentionKernel::plain;
  form.dropout = true;
  return form;
}

Model priced(const TransformerConfig& config, const LanguageForm& form,
             const RooflineOptions& options = {}, const KernelRates& rates = fitted_rates()) {
  return language_model(config, form, a100_80gb(), options, rates, "the test");
}

const TransformerConfig& published(const std::string& name) {
  const FamilyMember* const member = find_family(name);
  REQUIRE_MESSAGE(member != nullptr, name);
  return member->config;
}

double milliseconds(Time time) { return to_seconds(time) * 1e3; }

bool has_note(const Model& model, const std::string& part) {
  const std::vector<std::string>& notes = model.provenance.notes;
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

std::string refusal(const TransformerConfig& config, const LanguageForm& form,
                    const RooflineOptions& options = {}) {
  try {
    priced(config, form, options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

// CLUSTER section 14, the cost model.
TEST_CASE("forward and backward of a block are those of the fit") {
  const Model sharded = priced(gpt_of(48, 8192, 64), of_2021(2, 8));
  REQUIRE(sharded.layers.size() == 50);
  for (const std::size_t block : {std::size_t{1}, std::size_t{20}, std::size_t{48}}) {
    CHECK(milliseconds(sharded.layers[block].forward) == doctest::Approx(4.958142).epsilon(1e-6));
    CHECK(milliseconds(sharded.layers[block].backward) == doctest::Approx(9.058751).epsilon(1e-6));
  }
  const Model whole = priced(gpt_of(30, 3072, 32), of_2021(8, 1));
  CHECK(milliseconds(whole.layers[1].forward) == doctest::Approx(26.883893).epsilon(1e-6));
  CHECK(milliseconds(whole.layers[1].backward) == doctest::Approx(47.338851).epsilon(1e-6));
}

TEST_CASE("layers are an embedding, the blocks in order, and a head") {
  const Model model = priced(gpt_of(3, 1024, 16), of_2021(1, 1));
  std::vector<std::string> names;
  std::vector<std::string> kinds;
  for (const Layer& layer : model.layers) {
    names.push_back(layer.name);
    kinds.push_back(layer.kind);
  }
  CHECK(names == std::vector<std::string>{"embedding", "block.0", "block.1", "block.2", "head"});
  CHECK(kinds == std::vector<std::string>{"embedding", "block", "block", "block", "head"});
  CHECK(model.edges.empty());
  CHECK(model.batch == 1);
  CHECK(model.sample == "sequence");
  CHECK(model.tokens == 2048);
  CHECK(model.input == Bytes{8 * 2048});
}

TEST_CASE("I and W each take their kernels' time, or their launches' part of the CPU's floor") {
  for (const std::int64_t hidden : {std::int64_t{512}, std::int64_t{2048}, std::int64_t{8192}}) {
    CAPTURE(hidden);
    const TransformerConfig config = gpt_of(2, hidden, 16);
    LanguageForm form = of_2021(1, 4);
    const Layer block = priced(config, form).layers[1];
    form.seq = config.seq;
    const LayerKernels kernels = block_kernels(config, form, 0);
    const KernelRates rates = fitted_rates();
    const auto expected = [&](const std::vector<Kernel>& pass, int launches) {
      double work = launches * rates.kernel;
      for (const Kernel& kernel : pass) {
        work += seconds(kernel, rates, 312e12, 2.039e12, false);
      }
      const double floor = 1.2 * rates.layer_floor * launches / 50;
      return std::pow(std::pow(work, 8) + std::pow(floor, 8), 1.0 / 8);
    };
    CHECK(to_seconds(block.input_grad) ==
          doctest::Approx(expected(kernels.input_grad, 37)).epsilon(1e-9));
    CHECK(to_seconds(block.weight_grad) ==
          doctest::Approx(expected(kernels.weight_grad, 13)).epsilon(1e-9));
    CHECK(block.input_grad + block.weight_grad >= block.backward);
    CHECK(to_seconds(block.input_grad + block.weight_grad) <= 1.2 * to_seconds(block.backward));
  }
}

TEST_CASE("without a floor I and W add up to B") {
  KernelRates rates = fitted_rates();
  rates.layer_floor = 0;
  for (const Layer& layer : priced(gpt_of(2, 2048, 16), of_2021(1, 4), {}, rates).layers) {
    CHECK(layer.input_grad + layer.weight_grad == layer.backward);
  }
}

TEST_CASE("a block takes no less than the CPU needs to issue it") {
  const Layer block = priced(gpt_of(1, 64, 1), of_2021(1, 1)).layers[1];
  CHECK(milliseconds(block.forward) == doctest::Approx(2.2).epsilon(1e-3));
  CHECK(milliseconds(block.backward) == doctest::Approx(2.64).epsilon(1e-3));
  KernelRates rates = fitted_rates();
  rates.layer_floor = 0;
  CHECK(milliseconds(priced(gpt_of(1, 64, 1), of_2021(1, 1), {}, rates).layers[1].forward) < 1);
}

TEST_CASE("an overhead an op counts for each kernel that is launched") {
  RooflineOptions options;
  options.overhead = parse_time("100us");
  const Model slow = priced(gpt_of(1, 8192, 64), of_2021(4, 1), options);
  const Model plain = priced(gpt_of(1, 8192, 64), of_2021(4, 1));
  CHECK(milliseconds(slow.layers[1].forward - plain.layers[1].forward) ==
        doctest::Approx(25 * 0.1).epsilon(1e-3));
}

TEST_CASE("the embedding's backward is W, and its stash waits for it") {
  const Layer embedding = priced(gpt_of(1, 1024, 16), of_2021(2, 1)).layers.front();
  CHECK(embedding.input_grad == Time{});
  CHECK(embedding.weight_grad == embedding.backward);
  CHECK(embedding.backward > Time{});
  CHECK(embedding.stash_input_grad == Bytes{});
  CHECK(embedding.stash_weight_grad == Bytes{2 * 2048 * (8 + 1024)});  // ids, and masks
}

TEST_CASE("the vocabulary is padded to a multiple of 128 tp") {
  TransformerConfig config = gpt_of(1, 1024, 16);
  config.vocab = 50257;
  config.tied = false;
  const Model model = priced(config, of_2021(1, 8));
  CHECK(model.layers.back().parameters == 51200 / 8 * 1024 + 2 * 1024);
  CHECK(model.layers.front().parameters == 51200 / 8 * 1024 + 2048 * 1024);
  CHECK(has_note(model, "the vocabulary of 50257 is padded to 51200"));
  CHECK(model.parameters == parameters(config));  // as published, not padded
  CHECK(priced(config, of_2021(1, 1)).layers.back().parameters == 50304 * 1024 + 2 * 1024);
}

TEST_CASE("a tied head states which of its weights are the embedding's, and counts the others") {
  const Model model = priced(gpt_of(1, 1024, 16), of_2021(1, 1));
  CHECK(model.layers.back().parameters == 2 * 1024);
  CHECK(model.layers.back().weights == Bytes{2 * (51200 * 1024 + 2 * 1024)});
  CHECK(model.layers.back().tied_weights == Bytes{2 * 51200 * 1024});
}

TEST_CASE("the parameters of one rank without degrees are the model's") {
  for (const char* const name : {"gpt2-xl", "llama2-7b", "llama3-8b", "qwen3-8b", "mixtral-8x7b",
                                 "deepseek-v2", "deepseek-v3", "gemma2-9b", "bloom-176b"}) {
    CAPTURE(name);
    TransformerConfig config = published(name);
    config.vocab = (config.vocab + 127) / 128 * 128;
    LanguageForm form;
    form.seq = 1024;
    const Model model = priced(config, form);
    std::int64_t sum = 0;
    std::int64_t experts = 0;
    for (const Layer& layer : model.layers) {
      sum += layer.parameters;
      experts += layer.expert_parameters;
      CHECK(layer.weights.count == layer.gradients.count);
      CHECK(layer.optimizer_state.count == 6 * layer.weights.count);
    }
    CHECK(sum == parameters(config));
    std::int64_t routed = 0;
    for (std::int64_t i = 0; i < config.layers; ++i) routed += expert_parameters(config, i);
    CHECK(experts == routed);
  }
}

TEST_CASE("ranks divide matrices, heads and experts, and repeat norms and routers") {
  TransformerConfig config = published("mixtral-8x7b");
  config.layers = 1;
  LanguageForm form;
  form.seq = 1024;
  form.sharding = {4, 1, 2, false};
  const Layer block = priced(config, form).layers[1];
  CHECK(block.expert_parameters * 8 == expert_parameters(config, 0));
  const std::int64_t repeated = 2 * config.hidden + 8 * config.hidden;  // norms, router
  const std::int64_t rest = block_parameters(config, 0) - expert_parameters(config, 0) - repeated;
  CHECK(block.parameters == block.expert_parameters + repeated + rest / 4);
  // More ranks than heads for keys and values: each has one of them, width 128.
  form.sharding = {32, 1, 1, false};
  const Layer narrow = priced(config, form).layers[1];
  const std::int64_t keys_and_values = 2 * 8 * 128 * config.hidden;
  CHECK(narrow.parameters == narrow.expert_parameters + repeated + (rest - keys_and_values) / 32 +
                                 2 * 128 * config.hidden);
}

TEST_CASE("the FLOPs of all layers and ranks are the model's") {
  for (const char* const name : {"gpt2", "llama3-8b", "mixtral-8x7b", "deepseek-v3", "gemma2-9b"}) {
    for (const int tensor : {1, 4}) {
      CAPTURE(name);
      const TransformerConfig& config = published(name);
      LanguageForm form;
      form.batch = 2;
      form.seq = 1024;
      form.sharding.tensor = tensor;
      form.sharding.context = 2;
      const Model model = priced(config, form);
      double sum = 0;
      for (const Layer& layer : model.layers) {
        CHECK(std::abs(2 * layer.forward_flops - layer.backward_flops) <= 2);
        sum += static_cast<double>(layer.forward_flops + layer.backward_flops);
      }
      CHECK(sum * tensor * 2 == doctest::Approx(model_flops(config, 1024, 2)).epsilon(1e-9));
      CHECK(model.layers.front().forward_flops == 0);
    }
  }
  CHECK(priced(gpt_of(1, 1024, 16), of_2021(1, 1)).peak_flops == 312e12);
}

TEST_CASE("equal blocks are equal, and others are not") {
  const Model dense = priced(gpt_of(4, 1024, 16), of_2021(1, 1));
  Layer other = dense.layers[4];
  other.name = "block.0";
  CHECK(other == dense.layers[1]);
  TransformerConfig config = published("deepseek-v3");
  config.layers = 5;
  LanguageForm form;
  form.seq = 1024;
  const Model model = priced(config, form);
  CHECK(model.layers[3].expert_parameters == 0);  // block.2, the last dense one
  CHECK(model.layers[4].expert_parameters > 0);
  const TransformerConfig& gemma = published("gemma2-9b");
  form.seq = 2 * gemma.window;
  const Model windows = priced(gemma, form);
  CHECK(windows.layers[1].forward < windows.layers[2].forward);
  CHECK(windows.layers[1].forward == windows.layers[3].forward);
}

TEST_CASE("a block with a window does no more FLOPs than its products and the window's pairs") {
  LanguageForm form;
  form.seq = 131072;
  const TransformerConfig& mistral = published("mistral-7b");
  const Model model = priced(mistral, form);
  const Layer& block = model.layers[1];
  const double weights = 4096.0 * (2 * 4096 + 2 * 8 * 128 + 3 * 14336);
  CHECK(static_cast<double>(block.forward_flops) ==
        doctest::Approx(2.0 * 131072 * (weights + 32 * 256 * 4096.0)).epsilon(1e-12));
  const auto flops = static_cast<double>(block.forward_flops + block.backward_flops);
  CHECK(flops < 312e12 * to_seconds(block.forward + block.backward));
  // What selective recomputation repeats is part of them.
  form.seq = 8192;
  form.attention = AttentionKernel::plain;
  CHECK(priced(mistral, form).layers[1].selective_flops == 2LL * 8192 * 32 * 256 * 4096);
}

TEST_CASE("selective recomputation repeats plain attention's scores") {
  const std::int64_t hidden = 4096;
  const std::int64_t heads = 32;
  const Layer block = priced(gpt_of(1, hidden, heads), of_2021(1, 4)).layers[1];
  // Korthikanti et al.: 5·a·s²·b bytes.
  CHECK(block.selective_stash == Bytes{5 * heads * 2048 * 2048 / 4});
  CHECK(block.selective_forward > Time{});
  CHECK(block.selective_forward < block.forward);
  CHECK(block.selective_flops == 4 * 2048LL * 2048 * hidden / 4);
  LanguageForm flash = of_2021(1, 4);
  flash.attention = AttentionKernel::flash;
  const Layer fused = priced(gpt_of(1, hidden, heads), flash).layers[1];
  CHECK(fused.selective_stash == Bytes{});
  CHECK(fused.selective_forward == Time{});
  CHECK(fused.selective_flops == 0);
}

TEST_CASE("a block keeps s b h (10 + 24/t + 5 a s/(h t)) bytes") {
  const std::int64_t hidden = 6144;
  const Layer block = priced(gpt_of(1, hidden, 64), of_2021(4, 8)).layers[1];
  const double elements = 4 * 2048.0 * static_cast<double>(hidden);
  const double expected =
      elements * (10 + 24.0 / 8 + 5 * 64 * 2048.0 / (static_cast<double>(hidden) * 8));
  CHECK(static_cast<double>((block.stash_input_grad + block.stash_weight_grad).count) == expected);
}

TEST_CASE("sequence parallelism divides what goes from block to block") {
  LanguageForm form = of_2021(1, 8);
  const Model whole = priced(gpt_of(1, 2048, 16), form);
  form.sharding.sequence = true;
  const Model divided = priced(gpt_of(1, 2048, 16), form);
  CHECK(whole.layers[1].output == Bytes{2048 * 2048 * 2});
  CHECK(divided.layers[1].output == Bytes{2048 * 2048 * 2 / 8});
  CHECK(divided.layers[0].output == divided.layers[1].output);
  CHECK(divided.sharding.sequence);
  CHECK(divided.layers[1].collectives.size() > whole.layers[1].collectives.size());
  form.sharding.tensor = 1;  // nothing to divide by
  CHECK_FALSE(priced(gpt_of(1, 2048, 16), form).sharding.sequence);
}

TEST_CASE("the optimizer takes its time a parameter, and the first layer the step's") {
  KernelRates rates = fitted_rates();
  rates.optimizer = 20e-12;
  rates.step = 0.25;
  const Model model = priced(gpt_of(1, 1024, 16), of_2021(1, 1), {}, rates);
  const auto parameters_in = [&](std::size_t layer) {
    return static_cast<double>(model.layers[layer].weights.count) / 2;
  };
  CHECK(to_seconds(model.layers[1].update) == doctest::Approx(20e-12 * parameters_in(1)));
  CHECK(to_seconds(model.layers[2].update) == doctest::Approx(20e-12 * parameters_in(2)));
  CHECK(to_seconds(model.layers[0].update) == doctest::Approx(0.25 + 20e-12 * parameters_in(0)));
  rates.optimizer = 0;  // 30 bytes at the memory's bandwidth
  CHECK(to_seconds(priced(gpt_of(1, 1024, 16), of_2021(1, 1), {}, rates).layers[1].update) ==
        doctest::Approx(30 / 2.039e12 * parameters_in(1)));
  RooflineOptions sgd;
  sgd.optimizer = "sgd";  // no moments: 12 bytes instead of 28
  CHECK(to_seconds(priced(gpt_of(1, 1024, 16), of_2021(1, 1), sgd, rates).layers[1].update) ==
        doctest::Approx(30 / 2.039e12 * parameters_in(1) * 12 / 28));
}

TEST_CASE("products in fp8 are faster, attention and what is kept are as in bf16") {
  RooflineOptions fp8;
  fp8.dtype = "fp8";
  KernelRates rates = fitted_rates();
  rates.kernel = rates.layer_floor = 0;
  const Model narrow = priced(gpt_of(1, 8192, 64), of_2021(1, 1), fp8, rates);
  const Model wide = priced(gpt_of(1, 8192, 64), of_2021(1, 1), {}, rates);
  CHECK(narrow.peak_flops == 624e12);
  CHECK(narrow.layers[1].stash_weight_grad == wide.layers[1].stash_weight_grad);
  CHECK(narrow.layers[1].weights == wide.layers[1].weights);
  CHECK(narrow.layers[1].selective_forward == wide.layers[1].selective_forward);
  // W has products alone, at least in proportion.
  LanguageForm form = of_2021(1, 1);
  form.seq = 2048;
  double products = 0;
  for (const Kernel& kernel : block_kernels(gpt_of(1, 8192, 64), form, 0).forward) {
    if (kernel.kind != KernelKind::gemm) continue;
    products += seconds(kernel, rates, 312e12, 2.039e12, false);
  }
  CHECK(to_seconds(wide.layers[1].forward - narrow.layers[1].forward) ==
        doctest::Approx(products * (1 - rates.gemm / rates.gemm_8bit / 2)).epsilon(1e-6));
}

TEST_CASE("numbers of 4 bytes double what is moved and kept") {
  RooflineOptions fp32;
  fp32.dtype = "fp32";
  const Model wide = priced(gpt_of(1, 1024, 16), of_2021(1, 1), fp32);
  const Model narrow = priced(gpt_of(1, 1024, 16), of_2021(1, 1));
  CHECK(wide.layers[1].output == narrow.layers[1].output * 2);
  CHECK(wide.layers[1].stash_weight_grad == narrow.layers[1].stash_weight_grad * 2);
  CHECK(wide.layers[1].weights == narrow.layers[1].weights * 2);
}

TEST_CASE("collectives and the head's logits have the bytes of their number format") {
  LanguageForm form = of_2021(1, 4);
  RooflineOptions options;
  const auto priced_in = [&](const char* dtype) {
    options.dtype = dtype;
    return priced(gpt_of(1, 1024, 16), form, options);
  };
  const std::int64_t elements = 2048 * 1024;
  const std::int64_t logits = 2048 * 51200 / 4;
  for (const char* const dtype : {"bf16", "fp8", "fp32"}) {
    CAPTURE(dtype);
    const std::int64_t bytes = std::string(dtype) == "fp32" ? 4 : 2;
    const Model model = priced_in(dtype);
    CHECK(model.layers[0].collectives.front().bytes == Bytes{bytes * elements});
    CHECK(model.layers[1].collectives.front().bytes == Bytes{bytes * elements});
    CHECK(model.layers[1].output == Bytes{bytes * elements});
    const Layer& head = model.layers[2];
    CHECK(head.collectives.front().bytes == Bytes{bytes * elements});
    CHECK(head.collectives.back().bytes == Bytes{4 * 2048});
    CHECK(head.stash_input_grad + head.stash_weight_grad ==
          Bytes{2 * bytes * elements + 4 * logits});
  }
}

TEST_CASE("degrees that do not divide the model are refused with both numbers") {
  const TransformerConfig& llama = published("llama3-8b");
  LanguageForm form;
  form.sharding.tensor = 3;
  CHECK(refusal(llama, form) ==
        "llama3-8b: heads must be a multiple of tp, and 32 is not one of 3");
  form.sharding = {1, 3, 1, false};
  CHECK(has(refusal(llama, form), "seq must be a multiple of cp, and 8192 is not one of 3"));
  form.seq = 8190;
  form.sharding.context = 2;
  CHECK(has(refusal(llama, form), "a multiple of 2·cp, two pieces a rank, and 8190 is not"));
  form.attention = AttentionKernel::plain;  // the scores of all pairs: any share is an equal one
  CHECK(refusal(llama, form) == "nothing was thrown");
  form.attention = AttentionKernel::flash;
  form.seq = 0;
  form.sharding = {1, 1, 4, false};
  CHECK(has(refusal(llama, form), "has no experts that ep 4 could divide; leave ep at 1"));
  form.sharding = {1, 1, 3, false};
  CHECK(has(refusal(published("mixtral-8x7b"), form), "experts must be a multiple of ep"));
  form.sharding = {8, 1, 1, true};
  form.seq = 8196;
  CHECK(has(refusal(llama, form), "seq must be a multiple of cp·tp with sp"));
  LanguageForm longer;
  longer.seq = 2048;
  CHECK(has(refusal(published("gpt2"), longer),
            "its table of positions has 1024 rows, and seq is 2048"));
  LanguageForm uneven;
  uneven.imbalance = 0.5;
  CHECK(has(refusal(published("mixtral-8x7b"), uneven), "at least 1, not 0.5"));
  LanguageForm none;
  none.batch = 0;
  CHECK(has(refusal(llama, none), "batch must be from 1"));
}

TEST_CASE("options are refused as those of a roofline are") {
  RooflineOptions options;
  options.dtype = "bf8";
  CHECK(has(
      refusal(gpt_of(1, 1024, 16), of_2021(1, 1), options),
      "no dtype is called 'bf8' (there are fp32, tf32, fp16, bf16, fp8, fp8-current, fp8-delayed, "
      "fp8-block, fp8-tensorwise, fp8-rowwise, mxfp8, nvfp4)"));
  options = {};
  options.efficiency = 2;
  CHECK(has(refusal(gpt_of(1, 1024, 16), of_2021(1, 1), options), "efficiency must be above 0"));
}

TEST_CASE("half of both peaks takes twice as long but for launches") {
  KernelRates rates = fitted_rates();
  rates.kernel = rates.layer_floor = 0;
  RooflineOptions half;
  half.efficiency = 0.5;
  const Model slow = priced(gpt_of(1, 1024, 16), of_2021(1, 1), half, rates);
  const Model fast = priced(gpt_of(1, 1024, 16), of_2021(1, 1), {}, rates);
  CHECK(to_seconds(slow.layers[1].forward) ==
        doctest::Approx(2 * to_seconds(fast.layers[1].forward)).epsilon(1e-9));
  CHECK(slow.peak_flops == fast.peak_flops);
}

TEST_CASE("a backward needs room for the widest gradients") {
  const Model model = priced(gpt_of(1, 4096, 32), of_2021(1, 4));
  const double scores = 2 * 2.0 * 8 * 2048 * 2048;
  const double vectors = 2 * 4.0 * 2048 * 1024;
  CHECK(model.layers[1].backward_workspace == Bytes{static_cast<std::int64_t>(scores + vectors)});
  CHECK(model.layers.back().backward_workspace == Bytes{4LL * 2048 * 51200 / 4});
}

TEST_CASE("context-parallel ranks need room for the keys and values of the whole sequence") {
  LanguageForm form = of_2021(1, 1);
  form.attention = AttentionKernel::flash;
  TransformerConfig config = gpt_of(1, 1024, 16);
  config.ffn = 1024;
  form.sharding.context = 4;
  const Layer block = priced(config, form).layers[1];
  const std::int64_t whole = 2LL * 2048 * 1024;  // of keys, as of values
  CHECK(block.forward_workspace == Bytes{2 * whole});
  // A quarter's queries and output, keys and values, and the gradients of those.
  CHECK(block.backward_workspace == Bytes{2 * whole / 4 + 4 * whole});
}

TEST_CASE("a rank has a head for keys and values at least") {
  TransformerConfig config = gpt_of(1, 1024, 32);
  config.ffn = 32;
  config.head_width = 1024;
  LanguageForm form = of_2021(1, 32);
  form.attention = AttentionKernel::flash;
  const Layer many = priced(config, form).layers[1];
  config.kv_heads = 1;
  const Layer one = priced(config, form).layers[1];
  CHECK(many.backward_workspace == Bytes{2LL * 2048 * 1024 * 4});
  CHECK(one.backward_workspace == many.backward_workspace);
}

TEST_CASE("values and output of latent attention have widths of their own") {
  TransformerConfig config = published("deepseek-v3");
  config.layers = 4;
  config.ffn = 128;
  LanguageForm form;
  form.batch = 1;
  form.seq = 4096;
  form.attention = AttentionKernel::flash;
  const Layer block = priced(config, form).layers[1];
  CHECK(block.backward_workspace == Bytes{2LL * 4096 * 128 * (192 + 192 + 128 + 128)});
}

TEST_CASE("a note says that multi-token prediction is not priced") {
  TransformerConfig config = published("deepseek-v3");
  config.layers = 4;
  LanguageForm form;
  form.seq = 1024;
  CHECK(has_note(priced(config, form),
                 "num_nextn_predict_layers is 1: multi-token prediction is not priced (about 11.6 "
                 "billion parameters, and its logits)"));
  config.prediction_modules = 0;
  CHECK_FALSE(has_note(priced(config, form), "prediction"));
}

TEST_CASE("the provenance says what was assumed") {
  LanguageForm form;
  form.imbalance = 1.25;
  form.sharding = {2, 1, 4, true};
  const Model model = priced(published("mixtral-8x7b"), form);
  const Provenance& p = model.provenance;
  CHECK(p.origin == Origin::estimated);
  CHECK(p.device == "NVIDIA A100 SXM 80 GB");
  CHECK(has(p.method, "estimated: kernels of a transformer, bf16, adam"));
  CHECK(has(p.method, "at 0.839 of the peak over 1 + 250/m + 60(1/n + 1/k)"));
  CHECK(has(p.method, "fused attention at 0.33"));
  CHECK(has(p.source, "rates of kernels: the test; peaks: data sheet"));
  CHECK(has_note(model, "tp 2 with sequence parallelism, cp 1, ep 4"));
  CHECK(has_note(model, "1.25 times the mean's tokens"));
  CHECK(has_note(priced(gpt_of(1, 1024, 16), of_2021(1, 1)), "attention is plain"));
}

}  // namespace stageline::language_model_tests
