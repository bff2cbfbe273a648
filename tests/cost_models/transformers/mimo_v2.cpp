// Is MiMo-V2-Flash what its file and its class say, with values narrower than keys?
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

namespace stageline::mimo_v2_tests {
namespace {

using test::flops_of;
using test::read_config;
using test::refusal_of_config;

using Json = nlohmann::json;

const TransformerConfig& mimo() { return find_family("mimo-v2-flash")->config; }

// In the words of its published class; the file itself was not at hand.
Json published() {
  Json json = Json::parse(R"({"model_type": "mimo_v2_flash", "hidden_size": 4096,
    "intermediate_size": 16384, "num_hidden_layers": 48, "num_attention_heads": 64,
    "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128, "swa_num_attention_heads": 64,
    "swa_num_key_value_heads": 8, "swa_head_dim": 192, "swa_v_head_dim": 128,
    "add_full_attention_sink_bias": false, "add_swa_attention_sink_bias": true,
    "attention_bias": false, "attention_chunk_size": 128, "attention_value_scale": 0.707,
    "n_group": 1, "topk_group": 1, "n_routed_experts": 256, "n_shared_experts": null,
    "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "max_position_embeddings": 262144,
    "swa_rope_theta": 10000, "routed_scaling_factor": null, "sliding_window": 128,
    "sliding_window_size": 128, "topk_method": "noaux_tc", "vocab_size": 152576})");
  for (int i = 0; i < 48; ++i) {
    json["hybrid_layer_pattern"].push_back(i == 0 || i % 6 == 5 ? 0 : 1);
    json["moe_layer_freq"].push_back(i == 0 ? 0 : 1);
  }
  return json;
}

TEST_CASE("MiMo-V2-Flash has the parameters of its class, in either wording of its file") {
  // 309 billion, of which 15 work on a token (arXiv 2601.02780).
  CHECK(parameters(mimo()) == 308'778'780'864);
  CHECK(active_parameters(mimo()) == 15'445'936'320);
  for (const Json& json : {published(), Json{{"model_type", "mimo_v2_flash"}}}) {
    const TransformerConfig config = read_config(json);
    CHECK(parameters(config) == parameters(mimo()));
    CHECK(active_parameters(config) == active_parameters(mimo()));
    CHECK(config.window == 129);  // 128 tokens, and itself
    for (std::int64_t i = 0; i < 48; ++i) CHECK(config.kind(i) == mimo().kind(i));
  }
  // Each of its three modules, with a window and a dense MLP.
  CHECK(prediction_parameters(mimo()) / 3 / 1'000'000 == 329);
}

TEST_CASE("the numbers of heads and the width of values are those of the block") {
  LanguageForm form;
  form.seq = 4096;
  form.fused = true;
  const LayerKernels full = block_kernels(mimo(), form, 5);
  const LayerKernels window = block_kernels(mimo(), form, 1);
  CHECK(flops_of(full.forward, "qkv") == 2.0 * 4096 * 4096 * (64 * 192 + 4 * (192 + 128)));
  CHECK(flops_of(window.forward, "qkv") == 2.0 * 4096 * 4096 * (64 * 192 + 8 * (192 + 128)));
  CHECK(flops_of(window.forward, "projection") == 2.0 * 4096 * 64 * 128 * 4096);
  CHECK(flops_of(full.forward, "attention") == 2.0 * (4096.0 * 4096 / 2) * 64 * (192 + 128));
  const double reach = 129;
  CHECK(flops_of(window.forward, "attention") ==
        2.0 * (reach * 4096 - reach * reach / 2) * 64 * (192 + 128));
  TransformerConfig even = mimo();
  even.value_width = 192;
  even.wide->value_width = 0;  // as the keys
  const auto kept = [&](const TransformerConfig& config, std::int64_t block) {
    const KeptBytes bytes = kept_by_block(config, form, block);
    return bytes.input_grad + bytes.weight_grad;
  };
  // Values, and attention's output, which the projection reads: 64 numbers a head less.
  CHECK(kept(even, 5) - kept(mimo(), 5) == 2.0 * 4096 * (4 + 64) * 64);
  CHECK(kept(even, 1) - kept(mimo(), 1) == 2.0 * 4096 * (8 + 64) * 64);
  Sharding sharding;
  sharding.tensor = 8;  // of a block without a window each rank has one of 4 heads, twice
  const std::int64_t twice = parameters_of_block(mimo(), sharding, 47).all;
  sharding.tensor = 4;
  CHECK(twice > parameters_of_block(mimo(), sharding, 47).all / 2);
}

TEST_CASE("what its class does not have is refused by name") {
  const auto changed = [](const char* key, const Json& value) {
    Json json = published();
    json[key] = value;
    return refusal_of_config(json);
  };
  CHECK(changed("swa_head_dim", 128).find("swa_head_dim is 128, and head_dim is 192") !=
        std::string::npos);
  CHECK(changed("n_shared_experts", 1).find("n_shared_experts must be 0") != std::string::npos);
  CHECK(changed("add_full_attention_sink_bias", true).find("has sinks in blocks with a window") !=
        std::string::npos);
  CHECK(changed("swa_num_key_value_heads", 16).find("twice num_key_value_heads, 8") !=
        std::string::npos);
  CHECK(changed("attention_projection_layout", "fused_qkv").find("must be \"split\"") !=
        std::string::npos);
  CHECK(changed("hybrid_layer_pattern", {0, 1}).find("has 2 blocks") != std::string::npos);
  Json all_full = Json::array();
  for (int i = 0; i < 48; ++i) all_full.push_back("full_attention");
  CHECK(changed("layer_types", all_full).find("say different things") != std::string::npos);
}

}  // namespace
}  // namespace stageline::mimo_v2_tests
