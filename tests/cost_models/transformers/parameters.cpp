// Do language models have as many parameters and FLOPs as their publishers say?
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/rank_parameters.hpp"
#include "sim/base/errors.hpp"

namespace stageline::parameters_tests {
namespace {

const TransformerConfig& family(const std::string& name) {
  const FamilyMember* const member = find_family(name);
  REQUIRE_MESSAGE(member != nullptr, name);
  return member->config;
}

double billions(std::int64_t number) { return static_cast<double>(number) / 1e9; }

double billions_of(const std::string& name) { return billions(parameters(family(name))); }

std::string refusal(const TransformerConfig& config) {
  try {
    check(config);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST_CASE("every published model has exactly the published parameters") {
  int exact = 0;
  for (const FamilyMember& member : families()) {
    CAPTURE(member.config.name);
    CHECK_NOTHROW(check(member.config));
    if (member.published == 0) continue;
    CHECK(parameters(member.config) == member.published);
    ++exact;
  }
  CHECK(exact == 61);
}

TEST_CASE("GPT-OSS has windows in every other block, and a sink for each head") {
  TransformerConfig config = find_family("gpt-oss-120b")->config;
  CHECK(config.has_window(0));
  CHECK_FALSE(config.has_window(1));
  // 5.1 billion work on a token, of the embedding a row: the model card has 5.13 without it.
  CHECK(active_parameters(config) - config.vocab * config.hidden == 5'132'849'472);
  const std::int64_t with_sinks = parameters(config);
  config.sinks = false;
  CHECK(with_sinks - parameters(config) == 36 * 64);
}

TEST_CASE("models have distinct names, a source and a summary") {
  std::set<std::string> names;
  for (const FamilyMember& member : families()) {
    CAPTURE(member.config.name);
    CHECK(names.insert(member.config.name).second);
    CHECK(find_family(member.config.name) == &member);
    CHECK_FALSE(member.config.source.empty());
    CHECK_FALSE(member.config.family.empty());
    CHECK_FALSE(member.summary.empty());
  }
  CHECK(find_family("llama4") == nullptr);
}

TEST_CASE("Llama's parameters are those of the closed form") {
  // L(2h² + 2h·g·d + 3hf + 2h) + 2Vh + h: untied, RMS norms, no bias.
  const auto closed = [](std::int64_t layers, std::int64_t h, std::int64_t keys, std::int64_t f,
                         std::int64_t vocab) {
    return layers * (2 * h * h + 2 * h * keys + 3 * h * f + 2 * h) + 2 * vocab * h + h;
  };
  CHECK(closed(32, 4096, 4096, 11008, 32000) == 6'738'415'616);
  CHECK(parameters(family("llama2-7b")) == closed(32, 4096, 4096, 11008, 32000));
  CHECK(parameters(family("llama3-70b")) == closed(80, 8192, 8 * 128, 28672, 128256));
  CHECK(parameters(family("llama3-405b")) == closed(126, 16384, 8 * 128, 53248, 128256));
}

TEST_CASE("GPTs have the rounded parameters of their papers") {
  // Narayanan et al. 2021, table 1: 12·L·h²·(1 + 13/(12h) + (V+s)/(12·L·h)), V 51,200, s 2048.
  const double half = 0.00005 + 1e-9;
  // The last norm's 2h are not in the formula.
  const auto formula = [](const std::string& name) {
    const TransformerConfig& config = family(name);
    return billions(parameters(config) - 2 * config.hidden);
  };
  CHECK(std::abs(formula("megatron-1.7b") - 1.6522) < half);
  CHECK(std::abs(formula("megatron-18.4b") - 18.4497) < half);
  CHECK(std::abs(formula("megatron-39.1b") - 39.0960) < half);
  CHECK(std::abs(formula("megatron-145.6b") - 145.6222) < half);
  CHECK(std::abs(formula("megatron-1t") - 1008.0387) < half);
  for (const char* const size :
       {"1.7", "3.6", "7.5", "18.4", "22", "39.1", "76.1", "145.6", "310.1", "529.6"}) {
    CAPTURE(size);
    CHECK(std::abs(billions_of("megatron-" + std::string(size) + "b") - std::stod(size)) < 0.1);
  }

  TransformerConfig padded = family("gpt3-175b");
  CHECK(std::abs(billions(parameters(padded)) - 174.6043) < half);
  padded.vocab = 51200;  // as Megatron-LM pads it
  CHECK(std::abs(billions(parameters(padded)) - 174.6158) < half);
  CHECK(std::abs(billions_of("gpt3-6.7b") - 6.7) < 0.05);
  CHECK(std::abs(billions_of("gpt3-2.7b") - 2.7) < 0.05);
  CHECK(std::abs(billions_of("gpt3-13b") - 12.9) < 0.05);
}

TEST_CASE("a model is its embedding, its blocks, the last norm and the head") {
  for (const FamilyMember& member : families()) {
    const TransformerConfig& config = member.config;
    CAPTURE(config.name);
    const bool layer = config.norm == NormKind::layer;
    std::int64_t sum = (config.tied ? 1 : 2) * config.vocab * config.hidden;
    sum += config.places * config.hidden;
    sum += (layer ? 2 : 1) * (config.embedding_norm ? 2 : 1) * config.hidden;
    if (config.streams > 0) {  // which the head collapses
      sum += config.streams * config.streams * config.hidden + config.streams + 1;
    }
    std::int64_t idle = 0;
    for (std::int64_t i = 0; i < config.layers; ++i) {
      sum += block_parameters(config, i);
      const std::int64_t experts = expert_parameters(config, i);
      CHECK((experts > 0) == config.has_experts(i));
      CHECK(experts < block_parameters(config, i));
      if (experts > 0) {
        idle += experts / config.experts->count * (config.experts->count - config.experts->chosen);
      }
    }
    CHECK(parameters(config) == sum);
    CHECK(active_parameters(config) == sum - idle);
  }
}

TEST_CASE("as many parameters work on a token as the publishers round") {
  const auto active = [](const char* name) { return billions(active_parameters(family(name))); };
  CHECK(std::abs(active("mixtral-8x7b") - 12.9) < 0.05);  // arXiv 2401.04088: 13B
  CHECK(std::abs(active("mixtral-8x22b") - 39) < 0.5);    // mistral.ai: 39B
  CHECK(std::abs(active("qwen3-30b-a3b") - 3.3) < 0.1);   // model card: 3.3B
  CHECK(std::abs(active("qwen3-235b-a22b") - 22) < 0.5);  // model card: 22B
  CHECK(std::abs(active("deepseek-v2") - 21) < 0.5);      // arXiv 2405.04434: 21B
  // The publishers' numbers are without the embedding, which a token only looks up in:
  // 2.4B (model card of V2-Lite), 36.7B (README_WEIGHTS.md of V3).
  const auto behind_embedding = [&](const char* name) {
    const TransformerConfig& config = family(name);
    return billions(active_parameters(config) - config.vocab * config.hidden);
  };
  CHECK(std::abs(behind_embedding("deepseek-v2-lite") - 2.4) < 0.1);
  CHECK(std::abs(behind_embedding("deepseek-v3") - 36.7) < 0.1);
  CHECK(active_parameters(family("llama3-8b")) == parameters(family("llama3-8b")));
}

TEST_CASE("blocks with experts and with windows are the configured ones") {
  const TransformerConfig& third = family("deepseek-v3");
  CHECK_FALSE(third.has_experts(2));
  CHECK(third.has_experts(3));
  CHECK(third.has_experts(60));
  // Dense: 18432 wide. With experts: 256 and a shared one of 2048, router and its 256 biases.
  const std::int64_t experts = 3LL * 7168 * 2048 * 257 + 7168 * 256 + 256;
  CHECK(block_parameters(third, 3) - block_parameters(third, 2) == experts - 3LL * 7168 * 18432);

  TransformerConfig every_other = family("qwen3-30b-a3b");
  every_other.experts->every = 2;  // decoder_sparse_step of transformers
  CHECK_FALSE(every_other.has_experts(0));
  CHECK(every_other.has_experts(1));
  CHECK_FALSE(every_other.has_experts(2));

  const TransformerConfig& gemma = family("gemma2-9b");
  CHECK(gemma.has_window(0));
  CHECK_FALSE(gemma.has_window(1));
  CHECK(gemma.has_window(2));
  CHECK(family("mistral-7b").has_window(31));
  CHECK_FALSE(family("llama3-8b").has_window(0));
}

TEST_CASE("ranks hold all experts once among ep times their tensor degree") {
  const TransformerConfig& mixtral = family("mixtral-8x7b");
  const std::int64_t one = 3LL * 4096 * 14336;
  const auto held = [&](const Sharding& sharding) {
    return parameters_of_block(mixtral, sharding, 0);
  };
  const RankParameters usual = held({2, 1, 4, true});
  CHECK(usual.experts == 2 * one / 2);
  CHECK(held({2, 1, 8, true, 1}).experts == one);
  CHECK(held({2, 1, 4, true, 1}).experts == 2 * one);
  CHECK(held({2, 1, 2, true, 4}).experts == 4 * one / 4);
  for (const int tensor : {1, 2, 4}) {
    const RankParameters rank = held({2, 1, 4, true, tensor});
    CHECK(rank.all - rank.experts == usual.all - usual.experts);
  }
}

TEST_CASE("modules that predict further tokens have a block, a product of two widths and norms") {
  const TransformerConfig& v3 = family("deepseek-v3");
  const std::int64_t module = block_parameters(v3, 60) + 2 * 7168 * 7168 + 3 * 7168;
  CHECK(prediction_parameters(v3) == module);
  // The published files hold 684.5 billion: embedding and head once more, and scales.
  CHECK(std::abs(static_cast<double>(parameters(v3) + module + 2 * 129280 * 7168) / 684.5e9 - 1) <
        1e-3);
  TransformerConfig two = v3;
  two.prediction_modules = 2;
  CHECK(prediction_parameters(two) == 2 * module);
  CHECK(parameters(two) == parameters(v3));
  CHECK(prediction_parameters(family("deepseek-v2")) == 0);
}

TEST_CASE("model FLOPs of a GPT are those of the literature's formula") {
  TransformerConfig gpt3 = family("gpt3-175b");
  gpt3.vocab = 51200;
  const double step = model_flops(gpt3, 2048, 1536);
  CHECK(std::abs(step / 3.386197e18 - 1) < 2e-7);
  // With the blocks' forward repeated: 96·B·s·L·h²·(1 + s/(6h) + V/(16·L·h)).
  const double head = 6.0 * 12288 * 51200 * 2048 * 1536;
  CHECK(std::abs((step + (step - head) / 3) / 4.510971e18 - 1) < 2e-7);
  CHECK(model_flops(gpt3, 2048, 3072) == doctest::Approx(2 * step).epsilon(1e-12));
}

TEST_CASE("model FLOPs count the experts that a token chooses, and the router") {
  const TransformerConfig& mixtral = family("mixtral-8x7b");
  TransformerConfig dense = mixtral;
  dense.experts.reset();
  dense.ffn = 2 * mixtral.experts->ffn;
  const double router = 6.0 * 32 * 4096 * 8 * 4096;  // blocks, hidden, experts, tokens
  const double expected = model_flops(dense, 4096, 1) + router;
  CHECK(model_flops(mixtral, 4096, 1) == doctest::Approx(expected).epsilon(1e-12));

  // 6 FLOPs a token for each weight of a product, and for each pair of tokens of a head.
  const TransformerConfig& lite = family("deepseek-v2-lite");
  const double heads = 16;
  const double attention =
      2048 * heads * 192 + 2048 * (512 + 64) + 512 * heads * (128 + 128) + heads * 128 * 2048;
  const double pairs = heads * (192 + 128) * 4096;
  const double experts = 26 * (2048 * 64 + 3.0 * 2048 * 1408 * (6 + 2)) + 3.0 * 2048 * 10944;
  const double products = 27 * (attention + pairs) + experts + 2048.0 * 102400;
  CHECK(model_flops(lite, 4096, 2) == doctest::Approx(6 * products * 8192).epsilon(1e-12));
}

TEST_CASE("model FLOPs are of all pairs of tokens, of a window those within it") {
  const TransformerConfig& mistral = family("mistral-7b");
  TransformerConfig whole = mistral;
  whole.window = 0;
  CHECK(model_flops(mistral, 4096, 1) == model_flops(whole, 4096, 1));
  const double a_key = 6.0 * 32 * 32 * (128 + 128) * 131072;  // of all blocks, heads and tokens
  CHECK(model_flops(whole, 131072, 1) - model_flops(mistral, 131072, 1) ==
        doctest::Approx(a_key * (131072 - 4096)).epsilon(1e-12));

  // In every other block.
  const TransformerConfig& gemma = family("gemma2-9b");
  whole = gemma;
  whole.window = 0;
  CHECK(attention_products(gemma, 0, 8192) == 16.0 * (256 + 256) * 4096);
  CHECK(attention_products(gemma, 1, 8192) == 16.0 * (256 + 256) * 8192);
  CHECK(model_flops(whole, 8192, 1) - model_flops(gemma, 8192, 1) ==
        doctest::Approx(6.0 * 21 * 16 * 512 * 4096 * 8192).epsilon(1e-12));
}

TEST_CASE("sizes that do not fit together are refused by name") {
  struct Bad {
    std::function<void(TransformerConfig&)> change;
    const char* words;
  };
  const std::vector<Bad> bad = {
      {[](TransformerConfig& c) { c.layers = 0; },
       "llama3-8b: layers must be from 1 to 4096, and it is 0"},
      {[](TransformerConfig& c) { c.hidden = 1 << 17; },
       "llama3-8b: hidden must be from 1 to 65536, and it is 131072"},
      {[](TransformerConfig& c) { c.kv_heads = 5; },
       "llama3-8b: heads must be a multiple of kv_heads, since so many heads share the keys and "
       "values of one, and 32 is not one of 5"},
      {[](TransformerConfig& c) { c.vocab = -1; },
       "llama3-8b: vocab must be from 1 to 4194304, and it is -1"},
      {[](TransformerConfig& c) { c.window_every = 0; },
       "llama3-8b: the distance of blocks with a window must be from 1 to 4096, and it is 0"},
      {[](TransformerConfig& c) { c.positions = Positions::learned; },
       "llama3-8b: the table of positions must be from 1 to 16777216, and it is 0"},
      {[](TransformerConfig& c) { c.experts = Experts{.count = 8, .chosen = 9, .ffn = 1}; },
       "llama3-8b: a token can choose at most all 8 experts, and topk is 9"},
      {[](TransformerConfig& c) { c.experts = Experts{.count = 8, .ffn = 1, .dense_blocks = 33}; },
       "llama3-8b: dense_blocks is 33, and there are only 32 layers"},
      {[](TransformerConfig& c) { c.experts = Experts{.count = 8, .ffn = 1, .shared_gate = true}; },
       "llama3-8b: a gate of the shared experts needs shared experts, and shared_ffn is 0"},
      {[](TransformerConfig& c) { c.latent = LatentAttention{.plain_width = 1, .value_width = 1}; },
       "llama3-8b: the rank of keys and values must be from 1 to 65536, and it is 0"},
  };
  for (const Bad& one : bad) {
    TransformerConfig config = family("llama3-8b");
    one.change(config);
    CHECK(refusal(config) == one.words);
  }
}

TEST_CASE("the greatest sizes that are allowed do not overflow") {
  TransformerConfig config = family("llama3-8b");
  config.layers = 1 << 12;
  config.hidden = 1 << 16;
  config.heads = 1 << 12;
  config.kv_heads = 1 << 12;
  config.head_width = 1 << 12;
  config.ffn = 1 << 18;
  config.vocab = 1 << 22;
  config.experts =
      Experts{.count = 1 << 12, .chosen = 1 << 12, .ffn = 1 << 18, .shared_ffn = 1 << 18};
  CHECK_NOTHROW(check(config));
  const double h = 65536;
  const double block = 4 * h * 16777216.0 + 4097 * 3 * h * 262144 + h * 4096 + 2 * h;
  const double all = 4096 * block + 2 * 4194304 * h + h;
  CHECK(static_cast<double>(parameters(config)) == doctest::Approx(all).epsilon(1e-12));
}

}  // namespace
}  // namespace stageline::parameters_tests
