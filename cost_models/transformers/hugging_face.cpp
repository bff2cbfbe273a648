// Reads config.json of Hugging Face's transformers.
//
// Where a key is missing, the value is that of the configuration classes of transformers
// (src/transformers/models/*/configuration_*.py).
#include "cost_models/transformers/hugging_face.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "cost_models/transformers/hugging_face_keys.hpp"
#include "sim/base/errors.hpp"

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

// Training usually starts with shorter sequences than a model takes in the end: the length before
// rotary scaling, and at most 8192.
std::int64_t usual_sequence(const Keys& keys, std::int64_t longest) {
  std::int64_t seq = longest;
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    const std::int64_t original = keys.inner_whole(key, "original_max_position_embeddings");
    if (original > 0) seq = std::min(seq, original);
  }
  return std::min(seq, longest_usual_sequence);
}

// Blocks with a window: the first of every `window_every`, where "layer_types" says so.
void read_layer_types(const Keys& keys, TransformerConfig& config) {
  const std::vector<std::string> types = keys.texts("layer_types");
  if (types.empty()) return;
  std::vector<std::int64_t> windows;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == "sliding_attention") {
      windows.push_back(static_cast<std::int64_t>(i));
    } else if (types[i] != "full_attention") {
      keys.refuse("layer_types", fmt::format("layer_types may have full_attention and "
                                             "sliding_attention, not {}",
                                             types[i]));
    }
  }
  if (static_cast<std::int64_t>(types.size()) != config.layers) {
    keys.refuse("layer_types", fmt::format("layer_types has {} blocks, and num_hidden_layers is {}",
                                           types.size(), config.layers));
  }
  if (windows.empty()) {
    config.window = 0;
    return;
  }
  if (config.window == 0) config.window = window_of(keys);
  config.window_every = windows.size() > 1 ? windows[1] - windows[0] : config.layers;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const bool sliding = std::binary_search(windows.begin(), windows.end(), i);
    if (sliding == (i % config.window_every == 0)) continue;
    keys.refuse("layer_types",
                fmt::format("windows must be in the first of every so many blocks, and block {} {} "
                            "one",
                            i, sliding ? "has" : "lacks"));
  }
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
    if (from > 0) {
      keys.refuse(
          "max_window_layers",
          fmt::format("windows from block {} on are not known here; it must be 0 or at least "
                      "num_hidden_layers ({})",
                      from, config.layers));
    }
    config.window = window;
  }
  read_layer_types(keys, config);
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
  config.query_key_norm = true;
  return config;
}

TransformerConfig read_qwen3(const Keys& keys) {
  TransformerConfig config = read_qwen3_without_windows(keys);
  if (config.head_width == 0) config.head_width = 128;
  read_qwen_windows(keys, config);
  return config;
}

// Block i has experts where decoder_sparse_step divides i + 1 and mlp_only_layers lacks i.
Experts read_qwen_experts(const Keys& keys) {
  Experts experts;
  experts.count = keys.whole(spelled(keys, "num_experts", "num_local_experts"));
  experts.chosen = keys.whole("num_experts_per_tok");
  experts.ffn = keys.whole("moe_intermediate_size");
  experts.every = keys.whole_or("decoder_sparse_step", 1);
  const std::vector<std::int64_t> dense = keys.wholes("mlp_only_layers");
  for (std::size_t i = 0; i < dense.size(); ++i) {
    if (dense[i] == static_cast<std::int64_t>(i) && experts.every == 1) continue;
    keys.refuse("mlp_only_layers",
                "the blocks without experts must be the first ones, 0, 1 and so on, and "
                "decoder_sparse_step 1");
  }
  experts.dense_blocks = static_cast<std::int64_t>(dense.size());
  return experts;
}

TransformerConfig read_qwen2_moe(const Keys& keys) {
  TransformerConfig config = read_qwen2_without_windows(keys);
  read_windows_beside_experts(keys, config);
  config.query_key_value_bias = keys.flag_or("qkv_bias", true);
  Experts experts = read_qwen_experts(keys);
  experts.shared_ffn = keys.whole("shared_expert_intermediate_size");
  experts.shared_gate = true;
  config.experts = experts;
  return config;
}

TransformerConfig read_qwen3_moe(const Keys& keys) {
  TransformerConfig config = read_qwen3_without_windows(keys);
  read_windows_beside_experts(keys, config);
  config.experts = read_qwen_experts(keys);
  return config;
}

TransformerConfig read_deepseek(const Keys& keys) {
  must_not_be_set(keys, "attention_bias", "latent attention with biases is not known here");
  must_not_be_set(keys, "mlp_bias", "experts with biases are not known here");
  keys.has("qk_head_dim");
  const bool third = keys.model_type() == "deepseek_v3";
  TransformerConfig config = read_llama(keys, {.longest = third ? 4096 : 2048});
  config.prediction_modules = keys.whole_or("num_nextn_predict_layers", 0, 0);
  LatentAttention latent;
  latent.query_rank = keys.is_null("q_lora_rank") ? 0 : keys.whole("q_lora_rank");
  latent.key_value_rank = keys.whole("kv_lora_rank");
  latent.plain_width = keys.whole("qk_nope_head_dim");
  latent.rotary_width = keys.whole("qk_rope_head_dim");
  latent.value_width = keys.whole("v_head_dim");
  config.latent = latent;
  config.head_width = latent.plain_width + latent.rotary_width;
  config.kv_heads = config.heads;
  if (keys.whole_or("moe_layer_freq", 1) != 1) {
    keys.refuse("moe_layer_freq", "moe_layer_freq must be 1: experts in all blocks but the first");
  }
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
  return config;
}

TransformerConfig read_gemma2(const Keys& keys) {
  must_not_be_set(keys, "use_bidirectional_attention", "a decoder's attention is causal");
  TransformerConfig config = read_grouped(keys, {.longest = 8192, .tied = true});
  if (config.head_width == 0) config.head_width = 256;
  config.norms_behind = true;
  config.window = window_of(keys);
  config.window_every = 2;
  read_layer_types(keys, config);
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

// The class of a model without a head, "MistralModel"; empty of one with the head of a language
// model. One with another head ("LlamaForSequenceClassification") has other sizes.
std::string class_without_head(const Keys& keys) {
  const std::vector<std::string> classes = keys.texts("architectures");
  if (classes.empty()) return "";
  const std::string& name = classes.front();
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("ForCausalLM") || has("LMHead")) return "";
  if (has("For") || has("Heads")) {
    keys.refuse("architectures",
                fmt::format("{} has another head than a language model's, over the vocabulary; "
                            "remove architectures to price the language model of these sizes",
                            name));
  }
  return name;
}

struct Reader {
  std::string_view type;
  TransformerConfig (*read)(const Keys& keys);
};
constexpr std::array<Reader, 13> readers = {{
    {"gpt2", read_gpt2},
    {"gpt_neox", read_gpt_neox},
    {"llama", read_plain_llama},
    {"mistral", read_mistral},
    {"mixtral", read_mixtral},
    {"qwen2", read_qwen2},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"deepseek_v2", read_deepseek},
    {"deepseek_v3", read_deepseek},
    {"gemma2", read_gemma2},
    {"bloom", read_bloom},
}};

// Letters in lower case, and digits.
std::string letters_of(std::string_view type) {
  std::string letters;
  for (const char c : type) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) continue;
    letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

// A suggestion where the type is a known one in another spelling. The nearest by letters is another
// architecture: gemma is not gemma2, whose blocks have two more norms and a window.
std::string respelled(const std::string& type) {
  for (const Reader& reader : readers) {
    if (letters_of(reader.type) == letters_of(type)) {
      return fmt::format(" (did you mean \"{}\"?)", reader.type);
    }
  }
  return "";
}

const Reader& reader_of(const Keys& keys) {
  if (!keys.has("model_type")) {
    keys.refuse("", "the key \"model_type\" is missing, which says how the others are read");
  }
  const std::string type = keys.model_type();
  for (const Reader& reader : readers) {
    if (reader.type == type) return reader;
  }
  keys.refuse("model_type", fmt::format("model_type \"{}\" is not known (there are {}){}", type,
                                        fmt::join(hugging_face_types(), ", "), respelled(type)));
}

}  // namespace

TransformerConfig read_hugging_face(const std::string& text, const std::string& file) {
  const Keys keys(text, file);
  const Reader& reader = reader_of(keys);
  TransformerConfig config = reader.read(keys);
  config.headless = class_without_head(keys);
  keys.refuse_rest();
  config.name = file;
  config.family = reader.type;
  config.source = file;
  try {
    return completed(std::move(config));
  } catch (const UsageError& error) {
    const std::string message = error.what();
    const std::string start = file + ": ";
    throw TraceError(file, "", message.starts_with(start) ? message.substr(start.size()) : message);
  }
}

std::vector<std::string> hugging_face_types() {
  std::vector<std::string> types;
  types.reserve(readers.size());
  for (const Reader& reader : readers) types.emplace_back(reader.type);
  return types;
}

}  // namespace stageline
