// Is Kimi Linear what its file and its class say, and does its scan move what its kernels do?
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face.hpp"
#include "cost_models/transformers/kernels.hpp"
#include "cost_models/transformers/language_form.hpp"
#include "cost_models/transformers/rank_parameters.hpp"
#include "sim/base/errors.hpp"
#include "tests/cost_models/transformers/model_questions.hpp"

namespace stageline::kimi_linear_tests {
namespace {

using test::bytes_of;
using test::flops_of;
using test::read_config;
using test::refusal_of_config;

using Json = nlohmann::json;

constexpr std::int64_t seq = 1024;

const TransformerConfig& kimi() { return find_family("kimi-linear-48b")->config; }

// With the keys of its published class and the sizes of its defaults; the file itself was not at
// hand.
Json published() {
  return Json::parse(R"({"model_type": "kimi_linear", "architectures": ["KimiLinearForCausalLM"],
    "first_k_dense_replace": 1, "head_dim": 72, "hidden_size": 2304, "intermediate_size": 9216,
    "kv_lora_rank": 512, "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
    "head_dim": 128, "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23,
    25, 26], "num_heads": 32, "short_conv_kernel_size": 4}, "mla_use_nope": true,
    "model_max_length": 1048576, "moe_intermediate_size": 1024, "moe_layer_freq": 1,
    "moe_renormalize": true, "moe_router_activation_func": "sigmoid", "num_attention_heads": 32,
    "num_expert_group": 1, "num_experts": 256, "num_experts_per_token": 8, "num_hidden_layers": 27,
    "num_key_value_heads": 32, "num_nextn_predict_layers": 0, "num_shared_experts": 1,
    "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rope_theta": 10000.0,
    "routed_scaling_factor": 2.446, "tie_word_embeddings": false, "topk_group": 1,
    "use_grouped_topk": true, "v_head_dim": 128, "vocab_size": 163840})");
}

LanguageForm form_of() {
  LanguageForm form;
  form.seq = seq;
  form.fused = true;
  return form;
}

TEST_CASE("Kimi Linear has the parameters that transformers counts of its file") {
  const TransformerConfig config = read_config(published());
  CHECK(parameters(config) == 49'122'681'728);  // 48B (model card)
  CHECK(parameters(config) == parameters(kimi()));
  CHECK(active_parameters(config) == active_parameters(kimi()));
  // Without the embedding, in which a token looks up: 3B active (model card).
  const std::int64_t active = active_parameters(kimi()) - kimi().vocab * kimi().hidden;
  CHECK(active / 10'000'000 == 310);
  for (std::int64_t i = 0; i < 27; ++i) CHECK(config.kind(i) == kimi().kind(i));
  Json own_words = published();  // transformers' own, which hold over the file's lists
  own_words.erase("linear_attn_config");
  for (int i = 0; i < 27; ++i) {
    own_words["layer_types"].push_back(i % 4 == 3 || i == 26 ? "full_attention"
                                                             : "linear_attention");
  }
  CHECK(parameters(read_config(own_words)) == parameters(config));
}

TEST_CASE("a block of Kimi Delta Attention has two low ranks, and no attention") {
  const LayerKernels passes = block_kernels(kimi(), form_of(), 1);
  // Queries, keys and values of 32 heads of 128, a rate a head, and two vectors of 128.
  CHECK(flops_of(passes.forward, "linear_in") == 2.0 * seq * 2304 * (3 * 4096 + 32 + 256));
  CHECK(flops_of(passes.forward, "linear_decay") == 2.0 * seq * 128 * 4096);
  CHECK(flops_of(passes.forward, "linear_gate") == 2.0 * seq * 128 * 4096);
  CHECK(flops_of(passes.weight_grad, "linear_gate") == 2.0 * seq * 128 * 4096);
  CHECK(flops_of(passes.forward, "attention") == 0);
  // By the chunked kernels, 16 bits an element: 25 passes over keys, 6 over values, 4 rows of a
  // chunk's matrix, two states a chunk of 64 tokens, 48 of diagonal blocks.
  const double each = 25 * 128 + 6 * 128 + 4 * 64 + 2 * 128 * (128.0 / 64) + 48;
  CHECK(bytes_of(passes.forward, "scan") == 2.0 * seq * 32 * each);
  CHECK(bytes_of(passes.input_grad, "scan") ==
        2.0 * seq * 32 * (58 * 128 + 15 * 128 + 11 * 64 + 4 * 128 * (128.0 / 64)));
  const LayerKernels latent = block_kernels(kimi(), form_of(), 3);
  CHECK(flops_of(latent.forward, "attention") > 0);
  CHECK(bytes_of(latent.forward, "rotary") == 0);  // without positions
  CHECK(bytes_of(latent.forward, "scan") == 0);
}

TEST_CASE("a block of Kimi Delta Attention keeps what its kernels save") {
  TransformerConfig other = kimi();  // without experts: what differs is the mixer's
  other.experts.reset();
  const auto kept = [&](std::int64_t block) {
    const KeptBytes bytes = kept_by_block(other, form_of(), block);
    return bytes.input_grad + bytes.weight_grad;
  };
  TransformerConfig narrow = other;
  narrow.linear->gate_rank = 0;
  const KeptBytes without = kept_by_block(narrow, form_of(), 1);
  CHECK(kept(1) - without.input_grad - without.weight_grad == 2.0 * seq * 2 * 128);
  // Norms of the hidden state, twice in and out, the MLP's three; then the convolution's input and
  // output, decays, two rows of 64 a head, three of values, two low ranks, six numbers a head.
  const double rest = 4 * 2304 + 3 * 9216;
  const double mixer = 2 * 3 * 4096 + 4096 + 2 * 32 * 64 + 3 * 4096 + 2 * 128 + 6 * 32;
  CHECK(kept(1) == 2.0 * seq * (rest + mixer));
}

TEST_CASE("ranks share its heads, and each has the products of low rank") {
  Sharding sharding;
  const std::int64_t whole = parameters_of_block(kimi(), sharding, 0).all;
  CHECK(whole == block_parameters(kimi(), 0));
  sharding.tensor = 4;
  const std::int64_t replicated = 2 * 2304 + 128 + 2 * 2304 * 128;
  CHECK(parameters_of_block(kimi(), sharding, 0).all == replicated + (whole - replicated) / 4);
  LanguageForm form = form_of();
  form.sharding.context = 2;
  CHECK_THROWS_WITH_AS(check_form(kimi(), form),
                       doctest::Contains("the states of its linear layers pass"), UsageError);
  form.sharding.context = 1;
  form.slice.count = 2;
  CHECK_THROWS_WITH_AS(check_form(kimi(), form),
                       doctest::Contains("pass between 2 slices of a sequence"), UsageError);
}

TEST_CASE("lists of Kimi Linear's blocks name each one once") {
  Json json = published();
  json["linear_attn_config"]["kda_layers"].push_back(4);
  CHECK(refusal_of_config(json).find("name block 4 2 times") != std::string::npos);
  json["linear_attn_config"]["kda_layers"] = {28};
  CHECK(refusal_of_config(json).find("kda_layers has block 28") != std::string::npos);
  json = published();
  json["linear_attn_config"]["gate"] = 3;
  CHECK(refusal_of_config(json).find("\"gate\"") != std::string::npos);
  json = published();
  json["mla_use_nope"] = false;
  CHECK(refusal_of_config(json).find("has no positions") != std::string::npos);
  json = published();
  json["moe_layer_freq"] = 2;
  CHECK(refusal_of_config(json).find("moe_layer_freq must be 1") != std::string::npos);
}

}  // namespace
}  // namespace stageline::kimi_linear_tests
