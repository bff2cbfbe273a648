// Is LongCat-Flash two blocks a layer, with experts of which some do nothing?
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

namespace stageline::longcat_flash_tests {
namespace {

using test::flops_of;
using test::read_config;
using test::refusal_of_config;

using Json = nlohmann::json;

const TransformerConfig& longcat() { return find_family("longcat-flash")->config; }

// With the keys of its published class and the sizes of its defaults; the file itself was not at
// hand.
Json published() {
  return Json::parse(R"({"model_type": "longcat_flash",
    "architectures": ["LongcatFlashForCausalLM"], "attention_bias": false,
    "attention_method": "MLA", "expert_ffn_hidden_size": 2048, "ffn_hidden_size": 12288,
    "hidden_size": 6144, "kv_lora_rank": 512, "max_position_embeddings": 131072,
    "mla_scale_kv_lora": true, "mla_scale_q_lora": true, "moe_topk": 12, "n_routed_experts": 512,
    "norm_topk_prob": false, "num_attention_heads": 64, "num_layers": 28, "q_lora_rank": 1536,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "router_bias": false,
    "routed_scaling_factor": 6.0, "v_head_dim": 128, "vocab_size": 131072, "zero_expert_num": 256,
    "zero_expert_type": "identity"})");
}

TEST_CASE("LongCat-Flash has the published parameters, and 27 billion active in the mean") {
  const TransformerConfig config = read_config(published());
  CHECK(config.layers == 56);
  CHECK(parameters(config) == 560'664'980'480);  // 560 billion (arXiv 2509.01322)
  CHECK(parameters(config) == parameters(longcat()));
  for (std::int64_t i = 0; i < 56; ++i) CHECK(config.kind(i) == longcat().kind(i));
  // 27 billion of 18.6 to 31.3; the embedding, a look-up, is 0.8 billion.
  const std::int64_t active = active_parameters(config) - config.vocab * config.hidden;
  CHECK(active > 26'500'000'000);
  CHECK(active < 27'500'000'000);
}

TEST_CASE("the router of LongCat-Flash knows experts that do nothing") {
  LanguageForm form;
  form.seq = 1024;
  form.fused = true;
  const LayerKernels first = block_kernels(longcat(), form, 0);
  CHECK(flops_of(first.forward, "router") == 2.0 * 1024 * 6144 * 768);
  CHECK(flops_of(first.forward, "experts_up") == 2.0 * 1024 * 8 * 6144 * 2 * 2048);
  CHECK(flops_of(first.forward, "shared_up") == 2.0 * 1024 * 6144 * 2 * 12288);
  const LayerKernels second = block_kernels(longcat(), form, 1);
  CHECK(flops_of(second.forward, "router") == 0);
  CHECK(flops_of(second.forward, "mlp_up") == flops_of(first.forward, "shared_up"));
  CHECK(flops_of(second.forward, "attention") == flops_of(first.forward, "attention"));
  TransformerConfig all = longcat();
  all.experts->zero = 0;
  CHECK(block_parameters(longcat(), 0) - block_parameters(all, 0) == 256 * (6144 + 1));
  Sharding sharding;
  sharding.expert = 32;  // the experts that do nothing are on no rank
  CHECK(parameters_of_block(longcat(), sharding, 0).experts == 512 / 32 * 3 * 6144LL * 2048);
}

TEST_CASE("a number of experts that is not whole in the mean is refused") {
  Json json = published();
  json["moe_topk"] = 10;
  CHECK(refusal_of_config(json).find(
            "chooses 10 of 768 experts, 512 of which work: 6.667 in the mean") !=
        std::string::npos);
  json["zero_expert_num"] = 0;
  CHECK(read_config(json).experts->chosen == 10);
  json["zero_expert_type"] = "copy";
  CHECK(refusal_of_config(json).find("must be \"identity\"") != std::string::npos);
  json = published();
  json["num_hidden_layers"] = 28;
  CHECK(refusal_of_config(json).find("must be twice num_layers") != std::string::npos);
  json = published();
  json["router_bias"] = true;
  CHECK(refusal_of_config(json).find("router_bias") != std::string::npos);
}

}  // namespace
}  // namespace stageline::longcat_flash_tests
