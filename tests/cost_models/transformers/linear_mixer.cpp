// Do blocks of other kinds than attention and an MLP have their kernels, bytes and parameters?
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernels.hpp"
#include "cost_models/transformers/language_form.hpp"
#include "cost_models/transformers/rank_parameters.hpp"
#include "sim/base/errors.hpp"
#include "tests/cost_models/transformers/model_questions.hpp"

namespace stageline::linear_mixer_tests {
namespace {

using test::flops_of;

constexpr std::int64_t seq = 1024;

const TransformerConfig& family(std::string_view name) { return find_family(name)->config; }

LanguageForm form_of(std::int64_t tokens = seq) {
  LanguageForm form;
  form.seq = tokens;
  form.fused = true;
  return form;
}

std::vector<std::string> names(const std::vector<Kernel>& kernels) {
  std::vector<std::string> list;
  for (const Kernel& kernel : kernels) list.emplace_back(kernel.name);
  return list;
}

double products_of(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::grouped) sum += kernel.flops;
  }
  return sum;
}

TEST_CASE("a linear block has two products, a convolution and a scan, and no attention") {
  const TransformerConfig& config = family("qwen3-next-80b");
  const LayerKernels passes = block_kernels(config, form_of(), 0);
  const std::vector<std::string> list = names(passes.forward);
  const std::vector<std::string> mixer(list.begin() + 1, list.begin() + 6);
  CHECK(mixer ==
        std::vector<std::string>{"linear_in", "convolution", "scan", "linear_norm", "linear_out"});
  CHECK(std::find(list.begin(), list.end(), "attention") == list.end());
  // Queries, keys (16 heads of 128 each), values and gates (32 of 128), two numbers a head.
  CHECK(flops_of(passes.forward, "linear_in") == 2.0 * seq * 2048 * (2 * 2048 + 2 * 4096 + 64));
  CHECK(flops_of(passes.forward, "linear_out") == 2.0 * seq * 4096 * 2048);
  CHECK(flops_of(passes.weight_grad, "linear_out") == flops_of(passes.forward, "linear_out"));
  const std::vector<std::string> fourth = names(block_kernels(config, form_of(), 3).forward);
  CHECK(std::find(fourth.begin(), fourth.end(), "attention_gate") != fourth.end());
  CHECK(std::find(fourth.begin(), fourth.end(), "scan") == fourth.end());
}

TEST_CASE("a scan grows with the tokens, attention with their square") {
  const TransformerConfig& config = family("qwen3-next-80b");
  const auto scan = [&](std::int64_t tokens) {
    for (const Kernel& kernel : block_kernels(config, form_of(tokens), 0).forward) {
      if (kernel.name == "scan") return kernel.bytes;
    }
    return 0.0;
  };
  // Read: queries and keys 2·2048, values 4096, two numbers for each of 32 heads; written 4096;
  // a state of 128 × 4096 in 4 bytes a chunk of 64 tokens, written and read.
  CHECK(scan(1024) == 1024 * (2.0 * (4096 + 4096 + 64 + 4096) + 2 * 4.0 * 4096 * 128 / 64));
  CHECK(scan(2048) == 2 * scan(1024));
  CHECK(attention_products(config, 0, 1024) == attention_products(config, 0, 65536));
  CHECK(attention_products(config, 3, 2048) == 2 * attention_products(config, 3, 1024));
}

TEST_CASE("a block of one half has the kernels and norms of that half alone") {
  const TransformerConfig& config = family("nemotron-h-8b");
  CHECK(names(block_kernels(config, form_of(), 1).forward) ==
        std::vector<std::string>{"mlp_norm", "mlp_up", "mlp_activation", "mlp_down", "mlp_add"});
  CHECK(names(block_kernels(config, form_of(), 7).forward) ==
        std::vector<std::string>{"attention_norm", "qkv", "attention", "projection",
                                 "attention_add"});
  LanguageForm eager = form_of();
  eager.fused = false;
  CHECK(block_kernels(config, eager, 1).launches_forward == 12);
  CHECK(block_norms(config, 0) == 1);
  CHECK(block_parameters(config, 1) == 2 * 4096 * 21504 + 4096);
  CHECK(kept_by_block(config, form_of(), 1).input_grad <
        kept_by_block(family("llama3-8b"), form_of(), 1).input_grad);
  CHECK(block_collectives(config, form_of(), 0).empty());
}

TEST_CASE("the products of all blocks are the FLOPs that the literature counts") {
  for (const char* const name :
       {"qwen3-next-80b", "nemotron-h-8b", "llama4-scout", "glm-4.5", "kimi-k2", "gemma3-27b",
        "minimax-m2", "mimo-v2-flash", "kimi-linear-48b", "longcat-flash"}) {
    CAPTURE(name);
    const TransformerConfig& config = family(name);
    double products = 2.0 * seq * static_cast<double>(config.hidden * config.vocab);
    double mixing = 0;  // scores and context, states, taps
    for (std::int64_t i = 0; i < config.layers; ++i) {
      products += products_of(block_kernels(config, form_of(), i).forward);
      mixing += 2.0 * seq * attention_products(config, i, seq);
      if (config.kind(i).mixer == Mixer::linear) {
        mixing += 2.0 * seq * static_cast<double>(config.linear->taps * config.linear->convolved());
      }
    }
    const double all = 3 * (products + mixing);
    CHECK(std::abs(all / model_flops(config, seq, 1) - 1) < 1e-12);
  }
}

TEST_CASE("ranks of a tensor-parallel group share the heads of linear layers") {
  const TransformerConfig& config = family("qwen3-next-80b");
  Sharding sharding;
  const RankParameters whole = parameters_of_block(config, sharding, 0);
  CHECK(whole.all == block_parameters(config, 0));
  sharding.tensor = 4;
  const RankParameters rank = parameters_of_block(config, sharding, 0);
  CHECK(rank.all < whole.all / 3);
  LanguageForm form = form_of();
  form.sharding.tensor = 2;
  const auto lists = block_collectives(config, form, 0);
  CHECK_FALSE(lists.empty());
  form.sharding.tensor = 1;
  form.sharding.context = 2;
  CHECK_THROWS_WITH_AS(check_form(config, form),
                       "qwen3-next-80b: among cp 2 ranks the states of its linear layers pass from "
                       "rank to rank, which is not priced; leave cp at 1",
                       UsageError);
}

TEST_CASE("Llama 4 attends within pieces, and to all tokens in every fourth block") {
  const TransformerConfig& config = family("llama4-scout");
  const std::int64_t tokens = 32768;
  const double piece = flops_of(block_kernels(config, form_of(tokens), 0).forward, "attention");
  const double whole = flops_of(block_kernels(config, form_of(tokens), 3).forward, "attention");
  CHECK(piece == 2.0 * (8192.0 * 32768 / 2) * 40 * 256);
  CHECK(whole == 2.0 * (32768.0 * 32768 / 2) * 40 * 256);
  const std::vector<std::string> fourth = names(block_kernels(config, form_of(), 3).forward);
  CHECK(std::find(fourth.begin(), fourth.end(), "rotary") == fourth.end());
}

TEST_CASE("sparse attention scores all keys in its indexer, and attends to some") {
  TransformerConfig config = family("deepseek-v3");
  const double dense = attention_products(config, 0, 8192);
  config.latent->index_heads = 64;
  config.latent->index_width = 128;
  config.latent->index_keys = 2048;
  CHECK(attention_products(config, 0, 8192) == dense / 4 + 64.0 * 128 * 8192);
  LanguageForm form = form_of(8192);
  const LayerKernels passes = block_kernels(config, form, 0);
  CHECK(flops_of(passes.forward, "index_scores") == 2.0 * (8192.0 * 8192 / 2) * 64 * 128);
  CHECK(flops_of(passes.forward, "attention") ==
        2.0 * (2048.0 * 8192 - 2048.0 * 2048 / 2) * 128 * (192 + 128));
  form.attention = AttentionKernel::plain;
  CHECK_THROWS_AS(check_form(config, form), UsageError);
}

TEST_CASE("options that say which blocks are what are refused where the blocks are listed") {
  TransformerConfig config = family("qwen3-next-80b");
  CHECK_THROWS_WITH_AS(
      set_option(config, "dense_blocks", "2"),
      "qwen3-next-80b: its blocks are listed one by one, and dense_blocks does not "
      "change them",
      UsageError);
  CHECK_THROWS_AS(set_option(config, "window", "512"), UsageError);
  CHECK(set_option(config, "layers", "8"));
  CHECK(config.kind(6).mixer == Mixer::linear);
  CHECK(config.kind(7).mixer == Mixer::attention);
  CHECK(config.kind(8).mixer == Mixer::attention);  // the block behind the last is as the last
  TransformerConfig gemma = family("gemma3-1b");
  CHECK(set_option(gemma, "window", "0"));
  CHECK_FALSE(gemma.has_window(0));
}

TEST_CASE("blocks are stated as shortly as they can be") {
  TransformerConfig config = family("llama3-8b");
  config.layers = 6;
  std::vector<BlockKind> kinds(6);
  config.window = 128;
  kinds[0].window = kinds[2].window = kinds[4].window = true;
  set_blocks(config, kinds);
  CHECK(config.pattern.empty());
  CHECK(config.window_every == 2);
  kinds[5].window = true;
  set_blocks(config, kinds);
  CHECK(config.pattern.size() == 5);  // the sixth is as the first
  kinds = std::vector<BlockKind>(6);
  kinds[1].window = kinds[3].window = kinds[5].window = true;
  set_blocks(config, kinds);
  CHECK(config.pattern.size() == 2);
  set_blocks(config, std::vector<BlockKind>(6));
  CHECK(config.window == 0);
  CHECK(config.pattern.empty());
}

// Sizes with blocks of one kind.
TransformerConfig blocks_of(const BlockKind& kind, const LinearMixer& linear) {
  TransformerConfig config;
  config.name = "made";
  config.layers = 2;
  config.hidden = 256;
  config.heads = config.kv_heads = 4;
  config.head_width = 64;
  config.ffn = 512;
  config.vocab = 1000;
  config.linear = linear;
  set_blocks(config, {kind, kind});
  return config;
}

TEST_CASE("Mamba 1 has four products and a scan; a short convolution has no scan") {
  const LinearMixer selective{.kind = LinearKind::selective,
                              .heads = 512,
                              .key_heads = 1,
                              .key_width = 16,
                              .value_width = 1,
                              .taps = 4,
                              .step_rank = 16};
  const TransformerConfig mamba =
      blocks_of({.mixer = Mixer::linear, .feed = Feed::none}, selective);
  const LayerKernels passes = block_kernels(mamba, form_of(), 0);
  CHECK(names(passes.forward) == std::vector<std::string>{"attention_norm", "linear_in",
                                                          "convolution", "linear_select",
                                                          "linear_step", "scan", "linear_norm",
                                                          "linear_out", "attention_add"});
  const double weights = 256 * 3 * 512 + 512 * (16 + 2 * 16) + 16 * 512;
  CHECK(products_of(passes.forward) == doctest::Approx(2 * seq * weights));
  const LinearMixer convolution{.kind = LinearKind::convolution,
                                .heads = 4,
                                .key_heads = 1,
                                .key_width = 1,
                                .value_width = 64,
                                .taps = 3};
  const TransformerConfig lfm =
      blocks_of({.mixer = Mixer::linear, .feed = Feed::none}, convolution);
  CHECK(names(block_kernels(lfm, form_of(), 0).forward) ==
        std::vector<std::string>{"attention_norm", "linear_in", "convolution", "linear_gates",
                                 "linear_out", "attention_add"});
  CHECK(parameters_of_block(lfm, {}, 0).all == block_parameters(lfm, 0));
  CHECK(parameters_of_block(mamba, {}, 0).all == block_parameters(mamba, 0));
}

TEST_CASE("attention beside a linear layer has the work of both, under one norm") {
  const LinearMixer linear{.kind = LinearKind::mamba,
                           .heads = 8,
                           .key_heads = 1,
                           .key_width = 32,
                           .value_width = 64,
                           .taps = 4};
  const auto sum = [&](Mixer mixer) {
    const TransformerConfig config = blocks_of({.mixer = mixer, .feed = Feed::none}, linear);
    return products_of(block_kernels(config, form_of(), 0).forward);
  };
  CHECK(sum(Mixer::both) == doctest::Approx(sum(Mixer::attention) + sum(Mixer::linear)));
  const TransformerConfig both = blocks_of({.mixer = Mixer::both, .feed = Feed::none}, linear);
  const std::vector<std::string> list = names(block_kernels(both, form_of(), 0).forward);
  CHECK(std::count(list.begin(), list.end(), "attention_norm") == 1);
  CHECK(std::count(list.begin(), list.end(), "attention_add") == 1);
  CHECK(parameters_of_block(both, {}, 0).all == block_parameters(both, 0));
}

TEST_CASE("an encoder's attention has twice the pairs of a causal one") {
  TransformerConfig config = blocks_of({}, {});
  config.linear.reset();
  const double causal = flops_of(block_kernels(config, form_of(), 0).forward, "attention");
  config.causal = false;
  const double all = flops_of(block_kernels(config, form_of(), 0).forward, "attention");
  CHECK(all == doctest::Approx(2 * causal));
  LanguageForm sliced = form_of();
  sliced.slice.count = 2;
  CHECK_THROWS_AS(check_form(config, sliced), UsageError);
}

}  // namespace
}  // namespace stageline::linear_mixer_tests
