// Is a config.json read as the model that it describes, and is what is not known refused?
#include "cost_models/transformers/hugging_face.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "sim/base/errors.hpp"

namespace stageline::hugging_face_tests {
namespace {

// As published.
constexpr const char* gpt2_json = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
  "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
  "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12,
  "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null,
  "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
  "summary_use_proj": true,
  "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}},
  "vocab_size": 50257})";

constexpr const char* gpt_neox_20b_json = R"({
  "architectures": ["GPTNeoXForCausalLM"], "attention_probs_dropout_prob": 0, "bos_token_id": 0,
  "eos_token_id": 0, "hidden_act": "gelu_fast", "hidden_dropout_prob": 0, "hidden_size": 6144,
  "initializer_range": 0.02, "intermediate_size": 24576, "layer_norm_eps": 1e-05,
  "max_position_embeddings": 2048, "model_type": "gpt_neox", "num_attention_heads": 64,
  "num_hidden_layers": 44, "rotary_emb_base": 10000, "rotary_pct": 0.25,
  "tie_word_embeddings": false, "torch_dtype": "float16", "transformers_version": "4.19.0.dev0",
  "use_cache": true, "vocab_size": 50432})";

constexpr const char* llama3_8b_json = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 4096,
  "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 8192,
  "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
  "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "transformers_version": "4.40.0.dev0", "use_cache": true, "vocab_size": 128256})";

constexpr const char* llama32_1b_json = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu",
  "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
  "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
  "pretraining_tp": 1, "rms_norm_eps": 1e-05,
  "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                   "original_max_position_embeddings": 8192, "rope_type": "llama3"},
  "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
  "transformers_version": "4.45.0.dev0", "use_cache": true, "vocab_size": 128256})";

constexpr const char* mistral_7b_json = R"({
  "architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
  "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.34.0.dev0",
  "use_cache": true, "vocab_size": 32000})";

constexpr const char* mixtral_8x7b_json = R"({
  "architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1,
  "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral",
  "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "num_local_experts": 8, "output_router_logits": false,
  "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02,
  "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "transformers_version": "4.36.0.dev0", "use_cache": true, "vocab_size": 32000})";

constexpr const char* qwen25_72b_json = R"({
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
  "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 8192, "initializer_range": 0.02,
  "intermediate_size": 29568, "max_position_embeddings": 131072, "max_window_layers": 80,
  "model_type": "qwen2", "num_attention_heads": 64, "num_hidden_layers": 80,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
  "sliding_window": 131072, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "transformers_version": "4.40.1", "use_cache": true, "use_mrope": false,
  "use_sliding_window": false, "vocab_size": 152064})";

constexpr const char* qwen15_moe_json = R"({
  "architectures": ["Qwen2MoeForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
  "decoder_sparse_step": 1, "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 2048,
  "initializer_range": 0.02, "intermediate_size": 5632, "max_position_embeddings": 8192,
  "max_window_layers": 21, "model_type": "qwen2_moe", "moe_intermediate_size": 1408,
  "norm_topk_prob": false, "num_attention_heads": 16, "num_experts": 60,
  "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 16,
  "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
  "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 5632,
  "sliding_window": 32768, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "transformers_version": "4.40.0.dev0", "use_cache": true, "use_sliding_window": false,
  "vocab_size": 151936})";

constexpr const char* qwen3_8b_json = R"({
  "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 12288,
  "max_position_embeddings": 40960, "max_window_layers": 36, "model_type": "qwen3",
  "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
  "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})";

constexpr const char* qwen3_30b_json = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128,
  "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
  "intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48,
  "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768,
  "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
  "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_scaling": null,
  "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
  "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})";

constexpr const char* deepseek_v2_lite_json = R"({
  "architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV2Config"},
  "aux_loss_alpha": 0.001, "bos_token_id": 100000, "eos_token_id": 100001,
  "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 2048,
  "initializer_range": 0.02, "intermediate_size": 10944, "kv_lora_rank": 512,
  "max_position_embeddings": 163840, "model_type": "deepseek_v2", "moe_intermediate_size": 1408,
  "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
  "norm_topk_prob": false, "num_attention_heads": 16, "num_experts_per_tok": 6,
  "num_hidden_layers": 27, "num_key_value_heads": 16, "pretraining_tp": 1, "q_lora_rank": null,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
  "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707,
                   "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096,
                   "type": "yarn"},
  "rope_theta": 10000, "routed_scaling_factor": 1.0, "scoring_func": "softmax", "seq_aux": true,
  "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy",
  "torch_dtype": "bfloat16", "transformers_version": "4.33.1", "use_cache": true,
  "v_head_dim": 128, "vocab_size": 102400})";

// Without its quantization_config, which a test below puts back.
constexpr const char* deepseek_v3_json = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config"}, "bos_token_id": 0,
  "eos_token_id": 1, "ep_size": 1, "first_k_dense_replace": 3, "hidden_act": "silu",
  "hidden_size": 7168, "initializer_range": 0.02, "intermediate_size": 18432,
  "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v3",
  "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256,
  "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
  "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
  "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
                   "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
                   "type": "yarn"},
  "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
  "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc",
  "torch_dtype": "bfloat16", "transformers_version": "4.33.1", "use_cache": true,
  "v_head_dim": 128, "vocab_size": 129280})";

constexpr const char* gemma2_2b_json = R"({
  "architectures": ["Gemma2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "attn_logit_softcapping": 50.0, "bos_token_id": 2, "cache_implementation": "hybrid",
  "eos_token_id": 1, "final_logit_softcapping": 30.0, "head_dim": 256,
  "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
  "hidden_size": 2304, "initializer_range": 0.02, "intermediate_size": 9216,
  "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 8,
  "num_hidden_layers": 26, "num_key_value_heads": 4, "pad_token_id": 0,
  "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
  "sliding_window": 4096, "torch_dtype": "float32", "transformers_version": "4.42.4",
  "use_cache": true, "vocab_size": 256000})";

constexpr const char* bloom_json = R"({
  "apply_residual_connection_post_layernorm": false, "architectures": ["BloomForCausalLM"],
  "attention_dropout": 0.0, "attention_softmax_in_fp32": true, "bias_dropout_fusion": true,
  "bos_token_id": 1, "eos_token_id": 2, "hidden_dropout": 0.0, "initializer_range": 0.02,
  "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": true, "model_type": "bloom",
  "n_embed": 14336, "n_inner": null, "n_layer": 70, "num_attention_heads": 112,
  "offset_alibi": 100, "pad_token_id": 3, "pretraining_tp": 4, "seq_length": 2048,
  "skip_bias_add": true, "skip_bias_add_qkv": false, "slow_but_exact": false,
  "transformers_version": "4.21.0.dev0", "unk_token_id": 0, "use_cache": true,
  "vocab_size": 250880})";

struct Published {
  const char* text;
  const char* family;  // name; empty: none
  std::int64_t parameters;
  std::int64_t seq;
};
const std::vector<Published> published = {
    {gpt2_json, "gpt2", 124'439'808, 1024},
    // The model card's table, https://huggingface.co/EleutherAI/gpt-neox-20b.
    {gpt_neox_20b_json, "", 20'554'567'680, 2048},
    {llama3_8b_json, "llama3-8b", 8'030'261'248, 8192},
    {llama32_1b_json, "llama3.2-1b", 1'235'814'400, 8192},
    {mistral_7b_json, "mistral-7b", 7'241'732'096, 8192},
    {mixtral_8x7b_json, "mixtral-8x7b", 46'702'792'704, 8192},
    {qwen25_72b_json, "qwen2.5-72b", 72'706'203'648, 8192},
    // safetensors of https://huggingface.co/Qwen/Qwen1.5-MoE-A2.7B.
    {qwen15_moe_json, "", 14'315'784'192, 8192},
    {qwen3_8b_json, "qwen3-8b", 8'190'735'360, 8192},
    {qwen3_30b_json, "qwen3-30b-a3b", 30'532'122'624, 8192},
    {deepseek_v2_lite_json, "deepseek-v2-lite", 15'706'484'224, 4096},
    {deepseek_v3_json, "deepseek-v3", 671'026'419'200, 4096},
    {gemma2_2b_json, "gemma2-2b", 2'614'341'888, 8192},
    {bloom_json, "bloom-176b", 176'247'271'424, 2048},
};

TransformerConfig read(const std::string& text) { return read_hugging_face(text, "a/config.json"); }

// Empty: it was read.
std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

// `text` with members of `patch` instead; null removes one (RFC 7396).
std::string patched(const char* text, const char* patch) {
  nlohmann::json json = nlohmann::json::parse(text);
  json.merge_patch(nlohmann::json::parse(patch));
  return json.dump();
}

TEST_CASE("published files are the models of their names") {
  for (const Published& one : published) {
    TransformerConfig config = read(one.text);
    CAPTURE(config.family);
    CAPTURE(one.family);
    CHECK(config.name == "a/config.json");
    CHECK(config.source == "a/config.json");
    CHECK(parameters(config) == one.parameters);
    CHECK(config.seq == one.seq);
    if (std::string_view(one.family).empty()) continue;
    const FamilyMember* const member = find_family(one.family);
    REQUIRE(member != nullptr);
    config.name = member->config.name;
    config.family = member->config.family;
    config.source = member->config.source;
    config.seq = member->config.seq;
    CHECK(config == member->config);
  }
}

TEST_CASE("keys that say nothing about sizes are passed over") {
  const TransformerConfig plain = read(llama3_8b_json);
  CHECK(read(patched(llama3_8b_json, R"({
    "_name_or_path": "mine", "dtype": "float16", "torch_dtype": null, "mlp_dropout": 0.5,
    "rope_parameters": {"rope_theta": 1.0}, "pad_token_id": 7, "rms_norm_eps": 1e-3,
    "use_cache": false, "attn_implementation": "sdpa"})")) == plain);
}

TEST_CASE("modules that predict further tokens are counted, and no layers") {
  const TransformerConfig one = read(deepseek_v3_json);
  CHECK(one.prediction_modules == 1);
  const auto modules = [](const char* patch) {
    return read(patched(deepseek_v3_json, patch)).prediction_modules;
  };
  CHECK(modules(R"({"num_nextn_predict_layers": 0})") == 0);
  CHECK(modules(R"({"num_nextn_predict_layers": null})") == 0);
  CHECK(read(patched(deepseek_v3_json, R"({"num_nextn_predict_layers": 2})")).layers == 61);
  CHECK(refusal(patched(deepseek_v3_json, R"({"num_nextn_predict_layers": -1})")) ==
        "a/config.json at /num_nextn_predict_layers: num_nextn_predict_layers must be a whole "
        "number from 0 to 16777216, not -1");
}

TEST_CASE("groups that limit the routing are read where the model's method has them") {
  const auto groups = [](const std::string& json) {
    const Experts experts = *read(json).experts;
    return std::pair(experts.groups, experts.chosen_groups);
  };
  CHECK(groups(deepseek_v3_json) == std::pair<std::int64_t, std::int64_t>(8, 4));
  CHECK(groups(patched(deepseek_v3_json, R"({"n_group": 4, "topk_group": 2})")) ==
        std::pair<std::int64_t, std::int64_t>(4, 2));
  CHECK(groups(patched(deepseek_v2_lite_json, R"({"n_group": 8, "topk_group": 3})")) ==
        std::pair<std::int64_t, std::int64_t>(1, 1));
  CHECK(groups(
            patched(deepseek_v2_lite_json,
                    R"({"n_group": 8, "topk_group": 3, "topk_method": "group_limited_greedy"})")) ==
        std::pair<std::int64_t, std::int64_t>(8, 3));
}

TEST_CASE("keys with defaults may be missing") {
  const TransformerConfig plain = read(patched(llama3_8b_json, R"({"num_key_value_heads": 32})"));
  CHECK(read(patched(llama3_8b_json, R"({"num_key_value_heads": null, "attention_bias": null,
                                        "tie_word_embeddings": null})")) == plain);
  const std::string neither = patched(gemma2_2b_json, R"({"head_dim": null})");
  CHECK(read(neither) == read(gemma2_2b_json));
  CHECK(read(patched(bloom_json, R"({"n_embed": null, "hidden_size": 14336})")) ==
        read(bloom_json));
}

TEST_CASE("GPT-NeoX has a parallel residual unless the file says otherwise") {
  CHECK(read(gpt_neox_20b_json).parallel_residual);
  CHECK(read(patched(gpt_neox_20b_json, R"({"use_parallel_residual": true})")) ==
        read(gpt_neox_20b_json));
  const std::string serial = patched(gpt_neox_20b_json, R"({"use_parallel_residual": false})");
  CHECK_FALSE(read(serial).parallel_residual);
  CHECK_FALSE(read(llama3_8b_json).parallel_residual);
  CHECK_FALSE(refusal(patched(llama3_8b_json, R"({"use_parallel_residual": true})")).empty());
}

TEST_CASE("biases are counted where the file says so") {
  const std::int64_t plain = parameters(read(llama3_8b_json));
  const TransformerConfig biased = read(patched(llama3_8b_json, R"({"attention_bias": true})"));
  CHECK(parameters(biased) - plain == 32 * (4096 + 2 * 1024 + 4096));
  const TransformerConfig mlp = read(patched(llama3_8b_json, R"({"mlp_bias": true})"));
  CHECK(parameters(mlp) - plain == 32 * (2 * 14336 + 4096));
}

TEST_CASE("windows are those of the blocks that have them") {
  // merge_patch cannot write null.
  std::string none = mistral_7b_json;
  none.replace(none.find("4096,\n  \"tie"), 4, "null");
  CHECK(read(none).window == 0);
  CHECK(read(patched(mistral_7b_json, R"({"sliding_window": null})")).window == 4096);  // missing

  CHECK(read(patched(qwen3_8b_json, R"({"use_sliding_window": true, "sliding_window": 512,
                                       "max_window_layers": 0})"))
            .window == 512);
  CHECK(read(patched(qwen3_8b_json, R"({"use_sliding_window": true, "sliding_window": 512})"))
            .window == 0);
  const TransformerConfig last =
      read(patched(qwen3_8b_json, R"({"use_sliding_window": true, "sliding_window": 512,
                                      "max_window_layers": 20})"));
  CHECK(last.window == 512);
  CHECK_FALSE(last.has_window(19));
  CHECK(last.has_window(20));
  CHECK(last.has_window(35));

  const auto gemma = [](const char* types) {
    return patched(
        gemma2_2b_json,
        (std::string(R"({"num_hidden_layers": 4, "layer_types": )") + types + "}").c_str());
  };
  CHECK(read(gemma(R"(["sliding_attention", "full_attention", "sliding_attention",
                       "full_attention"])"))
            .window_every == 2);
  CHECK(read(gemma(R"(["sliding_attention", "full_attention", "full_attention",
                       "sliding_attention"])"))
            .window_every == 3);
  CHECK(read(gemma(R"(["full_attention", "full_attention", "full_attention", "full_attention"])"))
            .window == 0);
  const TransformerConfig second = read(gemma(R"(["full_attention", "sliding_attention",
                                                 "full_attention", "sliding_attention"])"));
  CHECK_FALSE(second.has_window(0));
  CHECK(second.has_window(1));
  CHECK(second.pattern.size() == 2);
  CHECK(refusal(gemma(R"(["full_attention"])")) ==
        "a/config.json at /layer_types: layer_types has 1 blocks, and num_hidden_layers is 4");
  CHECK(refusal(gemma(R"(["full_attention", "linear_attention", "full_attention",
                          "full_attention"])")) ==
        "a/config.json at /layer_types: layer_types may have full_attention and sliding_attention, "
        "not linear_attention");
}

TEST_CASE("blocks without experts are where the file says") {
  const TransformerConfig first = read(patched(qwen3_30b_json, R"({"mlp_only_layers": [0, 1]})"));
  CHECK_FALSE(first.has_experts(1));
  CHECK(first.has_experts(2));
  const TransformerConfig every = read(patched(qwen3_30b_json, R"({"decoder_sparse_step": 2})"));
  CHECK_FALSE(every.has_experts(0));
  CHECK(every.has_experts(1));
  const TransformerConfig fifth = read(patched(qwen3_30b_json, R"({"mlp_only_layers": [5]})"));
  CHECK(fifth.has_experts(4));
  CHECK_FALSE(fifth.has_experts(5));
  CHECK(fifth.has_experts(47));
  const TransformerConfig even = read(patched(deepseek_v3_json, R"({"moe_layer_freq": 2})"));
  CHECK_FALSE(even.has_experts(2));  // the first three are dense
  CHECK_FALSE(even.has_experts(3));
  CHECK(even.has_experts(4));
}

TEST_CASE("what is not a config.json of a known model is refused in one sentence") {
  CHECK(refusal("{\"model_type\": ") == "a/config.json at line 1, column 16: this is not JSON");
  CHECK(refusal(std::string(100'000, '[')) ==
        "a/config.json: lists and objects are nested more than 64 deep");
  CHECK(refusal("[1e999]") == "a/config.json: a number is too large for 64 bits");
  CHECK(refusal("[1]") == "a/config.json: a config.json is an object, not [1]");
  CHECK(refusal("{}") ==
        "a/config.json: the key \"model_type\" is missing, which says how the others are read");
  CHECK(refusal(R"({"model_type": 3})") ==
        "a/config.json at /model_type: model_type must be a text, not 3");
  CHECK(refusal(R"({"model_type": "gemma9"})")
            .starts_with("a/config.json at /model_type: model_type \"gemma9\" is not known (there "
                         "are "));
  // Another architecture is no suggestion, another spelling is one.
  for (const std::string type : {"gemma9_text", "gemma3n9", "qwen4", "deepseek_v9", "llama5"}) {
    CHECK(refusal("{\"model_type\": \"" + type + "\"}").ends_with("youtu)"));
  }
  CHECK(refusal(R"({"model_type": "DeepSeek-V3"})").ends_with("(did you mean \"deepseek_v3\"?)"));
  CHECK(refusal(R"({"model_type": "llama", "num_hidden_layers": 2})") ==
        "a/config.json: the key \"hidden_size\" is missing, which a config.json of model_type "
        "\"llama\" must have");
  CHECK(refusal(patched(mistral_7b_json, R"({"num_key_value_heads": null})")) ==
        "a/config.json: the key \"num_key_value_heads\" is missing, which a config.json of "
        "model_type \"mistral\" must have");
}

TEST_CASE("keys of the wrong type and numbers out of range are refused by name") {
  const auto llama = [](const char* patch) { return refusal(patched(llama3_8b_json, patch)); };
  CHECK(llama(R"({"hidden_size": "4096"})") ==
        "a/config.json at /hidden_size: hidden_size must be a whole number from 1 to 16777216, not "
        "\"4096\"");
  CHECK(llama(R"({"hidden_size": 4096.5})") ==
        "a/config.json at /hidden_size: hidden_size must be a whole number from 1 to 16777216, not "
        "4096.5");
  CHECK(llama(R"({"vocab_size": 99999999999999999999})") ==
        "a/config.json at /vocab_size: vocab_size must be a whole number from 1 to 16777216, not "
        "1e+20");
  CHECK(llama(R"({"tie_word_embeddings": 1})") ==
        "a/config.json at /tie_word_embeddings: tie_word_embeddings must be true or false, not 1");
  CHECK(llama(R"({"num_key_value_heads": 5})") ==
        "a/config.json: heads must be a multiple of kv_heads, since so many heads share the keys "
        "and values of one, and 32 is not one of 5");
  CHECK(llama(R"({"num_attention_heads": 24, "num_key_value_heads": 24})") ==
        "a/config.json: hidden must be a multiple of heads where head_width is not given, and 4096 "
        "is not one of 24");
}

TEST_CASE("keys that may change what is computed are refused by name") {
  CHECK(refusal(patched(llama3_8b_json, R"({"num_hidden_layer": 4})")) ==
        "a/config.json at /num_hidden_layer: the key \"num_hidden_layer\" is not known for "
        "model_type \"llama\" and may change what is computed; remove it if it does not (did you "
        "mean \"num_hidden_layers\"?)");
  // Keys of other model_types.
  CHECK(refusal(patched(llama3_8b_json, R"({"num_local_experts": 8})"))
            .find("/num_local_experts: the key \"num_local_experts\" is not known") !=
        std::string::npos);
  CHECK(refusal(patched(gpt2_json, R"({"add_cross_attention": true})")) ==
        "a/config.json at /add_cross_attention: add_cross_attention is true, and a decoder alone "
        "has none");
  CHECK(refusal(patched(deepseek_v3_json, R"({"attention_bias": true})")) ==
        "a/config.json at /attention_bias: attention_bias is true, and latent attention with "
        "biases is not known here");
}

TEST_CASE("no file makes more than one sentence of a TraceError") {
  const std::vector<std::string> values = {"null", "-1",    "0",   "1e308", "9223372036854775807",
                                           "true", "\"x\"", "[1]", "{}",    "16777216"};
  int refused = 0;
  for (const Published& one : published) {
    const nlohmann::json json = nlohmann::json::parse(one.text);
    for (const auto& member : json.items()) {
      for (const std::string& value : values) {
        nlohmann::json changed = json;
        changed[member.key()] = nlohmann::json::parse(value);
        CAPTURE(member.key());
        CAPTURE(value);
        std::string message;
        REQUIRE_NOTHROW(message = refusal(changed.dump()));
        if (message.empty()) continue;
        ++refused;
        CHECK(message.starts_with("a/config.json"));
        CHECK(message.find('\n') == std::string::npos);
      }
    }
  }
  CHECK(refused > 500);
}

TEST_CASE("a class says which head a model has") {
  const auto of = [](const char* name) {
    return patched(llama3_8b_json,
                   (std::string(R"({"architectures": [")") + name + "\"]}").c_str());
  };
  CHECK(read(of("LLaMAForCausalLM")) == read(llama3_8b_json));
  CHECK(read(of("GPT2LMHeadModel")) == read(llama3_8b_json));
  CHECK(read(of("LlamaModel")).headless == "LlamaModel");
  CHECK(parameters(read(of("LlamaModel"))) == 8'030'261'248);
  CHECK(refusal(of("LlamaForSequenceClassification")) ==
        "a/config.json at /architectures: LlamaForSequenceClassification has another head than a "
        "language model's, over the vocabulary; remove architectures to price the language model "
        "of these sizes");
  CHECK_FALSE(refusal(of("GPT2DoubleHeadsModel")).empty());
  CHECK(read(patched(llama3_8b_json, R"({"architectures": null})")) == read(llama3_8b_json));
}

TEST_CASE("of two spellings of a size both must say the same") {
  CHECK(read(patched(gpt2_json, R"({"num_hidden_layers": 12})")) == read(gpt2_json));
  CHECK(
      refusal(patched(gpt2_json, R"({"num_hidden_layers": 24})")) ==
      "a/config.json at /num_hidden_layers: num_hidden_layers is 24, and n_layer, another word for "
      "it, is 12; remove one");
  CHECK_FALSE(refusal(patched(bloom_json, R"({"hidden_size": 2048, "n_embed": 1024})")).empty());
  const char* const local = R"({"num_experts": null, "num_local_experts": 128})";
  CHECK(read(patched(qwen3_30b_json, local)) == read(qwen3_30b_json));
}

TEST_CASE("keys that the class of a model_type does not read change nothing without a word") {
  for (const char* const text : {mistral_7b_json, mixtral_8x7b_json, qwen25_72b_json}) {
    CHECK(read(patched(text, R"({"attention_bias": false})")) == read(text));
    CHECK(refusal(patched(text, R"({"attention_bias": true})")).find("does not read it") !=
          std::string::npos);
  }
  CHECK(read(patched(gpt_neox_20b_json, R"({"head_dim": 96})")) == read(gpt_neox_20b_json));
  CHECK_FALSE(refusal(patched(gpt_neox_20b_json, R"({"head_dim": 64})")).empty());
  CHECK(read(patched(bloom_json, R"({"n_inner": 57344})")) == read(bloom_json));
  CHECK_FALSE(refusal(patched(bloom_json, R"({"n_inner": 8192})")).empty());
  CHECK_FALSE(refusal(patched(deepseek_v3_json, R"({"mlp_bias": true})")).empty());
  CHECK(read(patched(deepseek_v3_json, R"({"mlp_bias": false})")) == read(deepseek_v3_json));
  CHECK(read(patched(gemma2_2b_json, R"({"use_bidirectional_attention": false})")) ==
        read(gemma2_2b_json));
}

TEST_CASE("a missing max_position_embeddings is that of the class") {
  const auto seq = [](const char* text) {
    return read(patched(text, R"({"max_position_embeddings": null, "rope_scaling": null})")).seq;
  };
  CHECK(seq(llama3_8b_json) == 2048);
  CHECK(seq(gpt_neox_20b_json) == 2048);
  CHECK(seq(deepseek_v2_lite_json) == 2048);
  CHECK(seq(deepseek_v3_json) == 4096);
  for (const char* const text : {mistral_7b_json, mixtral_8x7b_json, qwen25_72b_json, qwen3_8b_json,
                                 qwen3_30b_json, gemma2_2b_json}) {
    CHECK(seq(text) == 8192);
  }
}

TEST_CASE("windows beside experts are read from layer_types alone") {
  const char* const windows = R"({"use_sliding_window": true, "sliding_window": 4096})";
  CHECK(refusal(patched(qwen3_30b_json, windows)) ==
        "a/config.json at /use_sliding_window: use_sliding_window is true, and which blocks have a "
        "window is not known here without layer_types");
  CHECK_FALSE(refusal(patched(qwen15_moe_json, windows)).empty());
  CHECK(read(patched(qwen15_moe_json, R"({"sliding_window": 0})")) == read(qwen15_moe_json));
}

}  // namespace
}  // namespace stageline::hugging_face_tests
