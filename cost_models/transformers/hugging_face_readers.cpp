// Reads a config.json by its model_type: of types with code of their own, the first written here.
#include "cost_models/transformers/hugging_face_readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "cost_models/transformers/family_reader.hpp"
#include "cost_models/transformers/older_readers.hpp"
#include "cost_models/transformers/usual_sequence.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

using Keys = HuggingFaceKeys;

constexpr std::int64_t longest_usual_sequence = 8192;

// The one of two spellings that is there. Where both are, they must agree: which one counts differs
// from class to class.
std::string spelled(const Keys& keys, const char* key, const char* other) {
  const bool has = keys.has(key);
  if (!keys.has(other)) return key;
  if (has && keys.whole(key) != keys.whole(other)) {
    keys.refuse(other, fmt::format("{} is {}, and {}, another word for it, is {}; remove one",
                                   other, keys.whole(other), key, keys.whole(key)));
  }
  return has ? key : other;
}

// What refuses a model with it.
void must_not_be_set(const Keys& keys, const std::string& key, const std::string& why) {
  if (keys.flag_or(key, false)) keys.refuse(key, fmt::format("{} is true, and {}", key, why));
}

// transformers takes a window that is missing as 4096 tokens, and null (of Qwen's also 0) as none.
std::int64_t window_of(const Keys& keys, std::int64_t least = 1) {
  return keys.is_null("sliding_window") ? 0 : keys.whole_or("sliding_window", 4096, least);
}

// Blocks with a window where "layer_types" says so.
void read_windows(const Keys& keys, TransformerConfig& config) {
  std::vector<BlockKind> kinds(as_size(std::min(config.layers, most_listed)));
  if (!read_layer_types(keys, kinds)) return;
  for (const BlockKind& kind : kinds) {
    if (kind.mixer != Mixer::linear) continue;
    keys.refuse("layer_types",
                "layer_types may have full_attention and sliding_attention, not linear_attention");
  }
  const bool windows =
      std::any_of(kinds.begin(), kinds.end(), [](const BlockKind& kind) { return kind.window; });
  if (windows && config.window == 0) config.window = window_of(keys);
  set_blocks(config, kinds);
}

// Where the classes of model types differ that have Llama's keys.
struct LlamaKeys {
  std::int64_t longest = 2048;  // max_position_embeddings where it is missing
  bool tied = false;            // tie_word_embeddings, likewise
  bool bias = true;             // whether attention_bias is read; else it must not be set
};

// Llama's keys, which most others have, too.
TransformerConfig read_llama(const Keys& keys, const LlamaKeys& of = {}) {
  TransformerConfig config;
  config.layers = keys.whole("num_hidden_layers");
  config.hidden = keys.whole("hidden_size");
  config.heads = keys.whole("num_attention_heads");
  config.kv_heads = keys.whole_or("num_key_value_heads", config.heads);
  config.head_width = keys.whole_or("head_dim", 0);
  config.ffn = keys.whole("intermediate_size");
  config.vocab = keys.whole("vocab_size");
  config.gated = true;
  config.tied = keys.flag_or("tie_word_embeddings", of.tied);
  if (!of.bias) {
    must_not_be_set(keys, "attention_bias",
                    fmt::format("{} does not read it in transformers", keys.model_type()));
  }
  const bool bias = of.bias && keys.flag_or("attention_bias", false);
  config.query_key_value_bias = bias;
  config.projection_bias = bias;
  config.seq = usual_sequence(keys, keys.whole_or("max_position_embeddings", of.longest));
  return config;
}

// Where it is missing, transformers takes 8, 32 or another number by model_type.
TransformerConfig read_grouped(const Keys& keys, const LlamaKeys& of) {
  TransformerConfig config = read_llama(keys, of);
  config.kv_heads = keys.whole("num_key_value_heads");
  return config;
}

TransformerConfig read_plain_llama(const Keys& keys) {
  TransformerConfig config = read_llama(keys);
  config.mlp_bias = keys.flag_or("mlp_bias", false);
  return config;
}

TransformerConfig read_mistral(const Keys& keys) {
  TransformerConfig config = read_grouped(keys, {.longest = 131072, .bias = false});
  config.window = window_of(keys);
  return config;
}

TransformerConfig read_mixtral(const Keys& keys) {
  TransformerConfig config = read_grouped(keys, {.longest = 131072, .bias = false});
  config.window = keys.whole_or("sliding_window", 0);
  config.experts = Experts{.count = keys.whole("num_local_experts"),
                           .chosen = keys.whole("num_experts_per_tok"),
                           .ffn = config.ffn};
  return config;
}

// Windows are off unless use_sliding_window says otherwise, and then in the blocks from
// max_window_layers on.
void read_qwen_windows(const Keys& keys, TransformerConfig& config) {
  const std::int64_t window = window_of(keys, 0);
  const std::int64_t from = keys.whole_or("max_window_layers", 28, 0);
  must_not_be_set(keys, "use_mrope", "positions of images are not known here");
  if (keys.flag_or("use_sliding_window", false) && from < config.layers) {
    config.window = window;
    std::vector<BlockKind> kinds = kinds_of(config);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      kinds[i].window = window > 0 && static_cast<std::int64_t>(i) >= from;
    }
    set_blocks(config, kinds);
  }
  read_windows(keys, config);
}

// The classes of the two types with experts count the blocks with a window each in its own way.
void read_windows_beside_experts(const Keys& keys, TransformerConfig& config) {
  if (!keys.has("layer_types")) {
    must_not_be_set(keys, "use_sliding_window",
                    "which blocks have a window is not known here without layer_types");
  }
  read_qwen_windows(keys, config);
}

TransformerConfig read_qwen2_without_windows(const Keys& keys) {
  TransformerConfig config = read_grouped(keys, {.longest = 32768, .bias = false});
  config.query_key_value_bias = true;
  return config;
}

TransformerConfig read_qwen2(const Keys& keys) {
  TransformerConfig config = read_qwen2_without_windows(keys);
  read_qwen_windows(keys, config);
  return config;
}

TransformerConfig read_qwen3_without_windows(const Keys& keys) {
  TransformerConfig config = read_grouped(keys, {.longest = 32768});
  config.query_key_norm = QueryKeyNorm::head;
  return config;
}

TransformerConfig read_qwen3(const Keys& keys) {
  TransformerConfig config = read_qwen3_without_windows(keys);
  if (config.head_width == 0) config.head_width = 128;
  read_qwen_windows(keys, config);
  return config;
}

// Block i has experts where decoder_sparse_step divides i + 1 and mlp_only_layers lacks i.
void read_qwen_experts(const Keys& keys, TransformerConfig& config) {
  Experts experts;
  experts.count = keys.whole(spelled(keys, "num_experts", "num_local_experts"));
  experts.chosen = keys.whole("num_experts_per_tok");
  experts.ffn = keys.whole("moe_intermediate_size");
  experts.every = keys.whole_or("decoder_sparse_step", 1);
  const std::vector<std::int64_t> dense = keys.wholes("mlp_only_layers");
  config.experts = experts;
  if (dense.empty()) return;
  std::vector<BlockKind> kinds = kinds_of(config);
  for (const std::int64_t block : dense) {
    if (block >= 0 && as_size(block) < kinds.size()) kinds[as_size(block)].feed = Feed::dense;
  }
  set_blocks(config, kinds);
}

TransformerConfig read_qwen2_moe(const Keys& keys) {
  TransformerConfig config = read_qwen2_without_windows(keys);
  read_windows_beside_experts(keys, config);
  config.query_key_value_bias = keys.flag_or("qkv_bias", true);
  read_qwen_experts(keys, config);
  const std::int64_t shared = keys.whole_or("shared_expert_intermediate_size", 5632, 0);
  if (!config.experts) return config;
  config.experts->shared_ffn = shared;
  config.experts->shared_gate = shared > 0;
  return config;
}

TransformerConfig read_qwen3_moe(const Keys& keys) {
  TransformerConfig config = read_qwen3_without_windows(keys);
  read_windows_beside_experts(keys, config);
  read_qwen_experts(keys, config);
  return config;
}

// moe_layer_freq: every so manyth block has experts, the first among them; or a list with 1 for
// those that have. Empty: all.
std::vector<std::int64_t> routed_blocks(const Keys& keys, std::int64_t layers) {
  std::vector<std::int64_t> blocks;
  if (keys.is_list("moe_layer_freq")) {
    const std::vector<std::int64_t> list = keys.wholes("moe_layer_freq");
    if (static_cast<std::int64_t>(list.size()) != layers) {
      keys.refuse("moe_layer_freq", fmt::format("moe_layer_freq has {} blocks, and "
                                                "num_hidden_layers is {}",
                                                list.size(), layers));
    }
    for (std::int64_t i = 0; i < layers; ++i) {
      if (list[as_size(i)] != 0) blocks.push_back(i);
    }
    return blocks;
  }
  const std::int64_t every = keys.whole_or("moe_layer_freq", 1);
  for (std::int64_t i = 0; every > 1 && i < layers; i += every) blocks.push_back(i);
  return blocks;
}

TransformerConfig read_deepseek(const Keys& keys) {
  must_not_be_set(keys, "attention_bias", "latent attention with biases is not known here");
  must_not_be_set(keys, "mlp_bias", "experts with biases are not known here");
  keys.has("qk_head_dim");
  const bool third = keys.type() == "deepseek_v3";
  TransformerConfig config = read_llama(keys, {.longest = third ? 4096 : 2048});
  config.prediction_modules = keys.whole_or("num_nextn_predict_layers", 0, 0);
  const LatentAttention latent = read_latent(keys, false);
  config.latent = latent;
  config.head_width = latent.plain_width + latent.rotary_width;
  config.kv_heads = config.heads;
  const std::vector<std::int64_t> routed = routed_blocks(keys, config.layers);
  Experts experts;
  experts.count = keys.whole("n_routed_experts");
  experts.chosen = keys.whole("num_experts_per_tok");
  experts.ffn = keys.whole("moe_intermediate_size");
  const std::int64_t shared =
      keys.is_null("n_shared_experts") ? 0 : keys.whole_or("n_shared_experts", third ? 1 : 2, 0);
  experts.shared_ffn = shared * experts.ffn;
  experts.dense_blocks = keys.whole_or("first_k_dense_replace", third ? 3 : 0, 0);
  const std::string method = keys.text_or("topk_method", third ? "noaux_tc" : "greedy");
  experts.correction_bias = method == "noaux_tc";
  const std::int64_t groups = keys.is_null("n_group") ? 1 : keys.whole_or("n_group", third ? 8 : 1);
  const std::int64_t chosen_groups =
      keys.is_null("topk_group") ? 1 : keys.whole_or("topk_group", third ? 4 : 1);
  if (third || method == "group_limited_greedy") {
    experts.groups = groups;
    experts.chosen_groups = chosen_groups;
  }
  config.experts = experts;
  if (routed.empty()) return config;
  std::vector<BlockKind> kinds = kinds_of(config);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto block = static_cast<std::int64_t>(i);
    if (std::binary_search(routed.begin(), routed.end(), block)) continue;
    kinds[i].feed = Feed::dense;
  }
  set_blocks(config, kinds);
  return config;
}

TransformerConfig read_gemma2(const Keys& keys) {
  must_not_be_set(keys, "use_bidirectional_attention", "a decoder's attention is causal");
  TransformerConfig config = read_grouped(keys, {.longest = 8192, .tied = true});
  if (config.head_width == 0) config.head_width = 256;
  config.norms_behind = true;
  config.window = window_of(keys);
  config.window_every = 2;
  read_windows(keys, config);
  return config;
}

// Layer norms and biases everywhere, an MLP of two matrices.
void make_gpt_like(TransformerConfig& config) {
  config.kv_heads = config.heads;
  config.norm = NormKind::layer;
  config.gated = false;
  config.query_key_value_bias = true;
  config.projection_bias = true;
  config.mlp_bias = true;
}

TransformerConfig read_gpt2(const Keys& keys) {
  must_not_be_set(keys, "add_cross_attention", "a decoder alone has none");
  TransformerConfig config;
  config.layers = keys.whole(spelled(keys, "n_layer", "num_hidden_layers"));
  config.hidden = keys.whole(spelled(keys, "n_embd", "hidden_size"));
  config.heads = keys.whole(spelled(keys, "n_head", "num_attention_heads"));
  config.ffn = keys.whole_or("n_inner", 4 * config.hidden);
  config.vocab = keys.whole("vocab_size");
  config.tied = keys.flag_or("tie_word_embeddings", true);
  config.positions = Positions::learned;
  config.places = keys.whole(spelled(keys, "n_positions", "max_position_embeddings"));
  config.seq = config.places;
  make_gpt_like(config);
  return config;
}

TransformerConfig read_gpt_neox(const Keys& keys) {
  TransformerConfig config = read_llama(keys);
  if (config.kv_heads != config.heads) {
    keys.refuse("num_key_value_heads", "gpt_neox has keys and values of all heads");
  }
  if (config.head_width != 0 && config.head_width * config.heads != config.hidden) {
    keys.refuse("head_dim", "gpt_neox has heads of hidden_size / num_attention_heads");
  }
  make_gpt_like(config);
  config.parallel_residual = keys.flag_or("use_parallel_residual", true);
  const bool bias = keys.flag_or("attention_bias", true);
  config.query_key_value_bias = bias;
  config.projection_bias = bias;
  return config;
}

TransformerConfig read_bloom(const Keys& keys) {
  TransformerConfig config;
  config.layers = keys.whole(spelled(keys, "n_layer", "num_hidden_layers"));
  config.hidden = keys.whole(spelled(keys, "hidden_size", "n_embed"));
  config.heads = keys.whole(spelled(keys, "n_head", "num_attention_heads"));
  config.ffn = 4 * config.hidden;
  if (keys.whole_or("n_inner", config.ffn) != config.ffn) {
    keys.refuse("n_inner", "bloom has MLPs of four times the hidden size");
  }
  config.vocab = keys.whole("vocab_size");
  config.tied = keys.flag_or("tie_word_embeddings", true);
  config.positions = Positions::alibi;
  config.embedding_norm = true;
  config.seq = keys.whole_or("seq_length", 2048);
  make_gpt_like(config);
  return config;
}

// The older form: all heads share one key and value, and attention and MLP read the same norm.
TransformerConfig read_falcon(const Keys& keys) {
  TransformerConfig config;
  config.layers = keys.whole(spelled(keys, "num_hidden_layers", "n_layer"));
  config.hidden = keys.whole(spelled(keys, "hidden_size", "n_embed"));
  config.heads = keys.whole(spelled(keys, "num_attention_heads", "n_head"));
  config.vocab = keys.whole("vocab_size");
  config.tied = keys.flag_or("tie_word_embeddings", true);
  config.ffn = keys.whole_or("ffn_hidden_size", 4 * config.hidden);
  const bool newer = keys.flag_or("new_decoder_architecture", false);
  const bool one_key = keys.flag_or("multi_query", true) && !newer;
  const std::int64_t key_heads =
      keys.whole_or(spelled(keys, "num_kv_heads", "n_head_kv"), config.heads);
  config.kv_heads = newer ? key_heads : one_key ? 1 : config.heads;
  const bool parallel = keys.flag_or("parallel_attn", true);
  const std::int64_t norms = keys.whole_or("num_ln_in_parallel_attn", newer ? 2 : 1);
  config.parallel_residual = parallel || (newer && norms == 2);
  config.one_norm = parallel && norms == 1;
  config.norm = NormKind::layer;
  const bool bias = keys.flag_or("bias", false);
  config.query_key_value_bias = config.projection_bias = config.mlp_bias = bias;
  config.positions = keys.flag_or("alibi", false) ? Positions::alibi : Positions::rotary;
  config.seq = usual_sequence(keys, keys.whole_or("max_position_embeddings", 2048));
  keys.has("activation");
  return config;
}

// StarCoder 1: GPT-2 with one key and value for all heads.
TransformerConfig read_gpt_bigcode(const Keys& keys) {
  TransformerConfig config = read_gpt2(keys);
  if (keys.flag_or("multi_query", true)) config.kv_heads = 1;
  if (keys.whole_or("num_key_value_heads", config.kv_heads) != config.kv_heads) {
    keys.refuse("num_key_value_heads",
                fmt::format("num_key_value_heads is {}, and multi_query makes it {}; remove one",
                            keys.whole("num_key_value_heads"), config.kv_heads));
  }
  for (const char* const key :
       {"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner",
        "pre_allocate_kv_cache", "validate_runner_input"}) {
    keys.has(key);
  }
  return config;
}

constexpr std::array<Reader, 18> readers = {{
    {"falcon", "FalconForCausalLM", read_falcon},
    {"gpt_bigcode", "GPTBigCodeForCausalLM", read_gpt_bigcode},
    {"gpt2", "GPT2LMHeadModel", read_gpt2},
    {"gpt_neox", "GPTNeoXForCausalLM", read_gpt_neox},
    {"llama", "LlamaForCausalLM", read_plain_llama},
    {"mistral", "MistralForCausalLM", read_mistral},
    {"mixtral", "MixtralForCausalLM", read_mixtral},
    {"qwen2", "Qwen2ForCausalLM", read_qwen2},
    {"qwen2_moe", "Qwen2MoeForCausalLM", read_qwen2_moe},
    {"qwen3", "Qwen3ForCausalLM", read_qwen3},
    {"qwen3_moe", "Qwen3MoeForCausalLM", read_qwen3_moe},
    {"deepseek_v2", "DeepseekV2ForCausalLM", read_deepseek},
    {"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek},
    {"gemma2", "Gemma2ForCausalLM", read_gemma2},
    {"bloom", "BloomForCausalLM", read_bloom},
    {"dbrx", "DbrxForCausalLM", read_dbrx},
    {"gpt_neo", "GPTNeoForCausalLM", read_gpt_neo},
    {"mpt", "MptForCausalLM", read_mpt},
}};

}  // namespace

std::span<const Reader> coded_readers() { return readers; }

std::int64_t usual_sequence(const HuggingFaceKeys& keys, std::int64_t longest) {
  std::int64_t seq = longest;
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    const std::int64_t original = keys.inner_whole(key, "original_max_position_embeddings");
    if (original > 0) seq = std::min(seq, original);
  }
  return std::min(seq, longest_usual_sequence);
}

}  // namespace stageline
