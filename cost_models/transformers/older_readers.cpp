// DBRX, GPT-Neo and MPT, as transformers 5.24 reads them (models/*/configuration_*.py and
// modeling_*.py, read 2026-11-30).
#include "cost_models/transformers/older_readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cost_models/transformers/family_blocks.hpp"
#include "cost_models/transformers/family_reader.hpp"
#include "cost_models/transformers/usual_sequence.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

using Keys = HuggingFaceKeys;

// The keys of an object inside, or of an empty one.
std::unique_ptr<Keys> part_of(const Keys& keys, const std::string& key) {
  if (keys.is_object(key)) return keys.inside(key);
  return std::make_unique<Keys>("{}", key);
}

// d_model, n_heads and the like.
void read_short_names(const Keys& keys, TransformerConfig& config) {
  config.layers = number_of(keys, {"n_layers|num_hidden_layers", needed});
  config.hidden = number_of(keys, {"d_model|hidden_size", needed});
  config.heads = number_of(keys, {"n_heads|num_attention_heads", needed});
  config.vocab = keys.whole("vocab_size");
  config.seq = usual_sequence(keys, number_of(keys, {"max_seq_len|max_position_embeddings", 2048}));
  config.norm = NormKind::layer_weight;
}

// [[["global", "local"], 12]]: what repeats, how often; or a text a block.
std::vector<std::string> attention_words(const Keys& keys, std::int64_t layers) {
  std::vector<std::string> words = keys.texts("attention_layers");
  const std::vector<HuggingFaceKeys::Repeated> repeated = keys.repeated_texts("attention_types");
  if (!words.empty()) return words;
  for (const HuggingFaceKeys::Repeated& one : repeated) {
    for (std::int64_t i = 0; i < std::min(one.times, most_listed); ++i) {
      words.insert(words.end(), one.texts.begin(), one.texts.end());
    }
  }
  while (repeated.empty() && static_cast<std::int64_t>(words.size()) < layers) {
    words.emplace_back(words.size() % 2 == 0 ? "global" : "local");
  }
  return words;
}

}  // namespace

TransformerConfig read_dbrx(const HuggingFaceKeys& keys) {
  TransformerConfig config;
  read_short_names(keys, config);
  config.tied = keys.flag_or("tie_word_embeddings", false);
  config.gated = true;
  const std::unique_ptr<Keys> attention = part_of(keys, "attn_config");
  config.kv_heads = attention->whole_or("kv_n_heads", 1);
  attention->refuse_rest(false);
  if (keys.whole_or("num_key_value_heads", config.kv_heads) != config.kv_heads) {
    keys.refuse("num_key_value_heads",
                fmt::format("num_key_value_heads is {}, and attn_config has {}; remove one",
                            keys.whole("num_key_value_heads"), config.kv_heads));
  }
  const std::unique_ptr<Keys> feed = part_of(keys, "ffn_config");
  config.ffn = feed->whole_or("ffn_hidden_size", 3584);
  config.experts = Experts{.count = feed->whole_or("moe_num_experts", 4),
                           .chosen = feed->whole_or("moe_top_k", 1),
                           .ffn = config.ffn};
  for (const char* const key : {"ffn_act_fn", "hidden_size", "moe_jitter_eps", "moe_loss_weight",
                                "moe_normalize_expert_weights", "uniform_expert_assignment"}) {
    feed->has(key);
  }
  feed->refuse_rest(false);
  return config;
}

TransformerConfig read_gpt_neo(const HuggingFaceKeys& keys) {
  TransformerConfig config;
  config.layers = number_of(keys, {"num_layers|num_hidden_layers", needed});
  config.hidden = keys.whole("hidden_size");
  config.heads = number_of(keys, {"num_heads|num_attention_heads", needed});
  config.ffn = keys.whole_or("intermediate_size", 4 * config.hidden);
  config.vocab = keys.whole("vocab_size");
  config.tied = keys.flag_or("tie_word_embeddings", true);
  config.norm = NormKind::layer;
  config.projection_bias = config.mlp_bias = true;
  config.positions = Positions::learned;
  config.places = keys.whole_or("max_position_embeddings", 2048);
  config.seq = config.places;
  const std::vector<std::string> words = attention_words(keys, config.layers);
  if (static_cast<std::int64_t>(words.size()) != config.layers) {
    keys.refuse("attention_types",
                fmt::format("attention_types has {} blocks, and num_layers is {}", words.size(),
                            config.layers));
  }
  std::vector<BlockKind> kinds(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != "global" && words[i] != "local") {
      keys.refuse("attention_types",
                  fmt::format("attention_types may have global and local, not {}", words[i]));
    }
    kinds[i].window = words[i] == "local";
  }
  config.window = keys.whole_or("window_size", 256);
  set_blocks(config, kinds);
  return config;
}

// transformers has ALiBi, MLPs of four times the width and no biases, whatever the file says of
// them.
TransformerConfig read_mpt(const HuggingFaceKeys& keys) {
  TransformerConfig config;
  read_short_names(keys, config);
  config.tied = keys.flag_or("tie_word_embeddings", true);
  config.ffn = 4 * config.hidden;
  if (keys.whole_or("expansion_ratio", 4) != 4) {
    keys.refuse("expansion_ratio", "mpt has MLPs of four times the width in transformers");
  }
  if (!keys.flag_or("no_bias", true)) {
    keys.refuse("no_bias", "no_bias is false, and mpt has no biases in transformers");
  }
  config.positions = Positions::alibi;
  for (const char* const key : {"embedding_fraction", "init_config", "init_device",
                                "learned_pos_emb", "norm_type", "tokenizer_name", "verbose"}) {
    keys.has(key);
  }
  const std::unique_ptr<Keys> attention = part_of(keys, "attn_config");
  if (!attention->flag_or("alibi", true)) {
    attention->refuse("alibi", "alibi is false, and mpt has ALiBi in transformers");
  }
  if (attention->text_or("attn_type", "multihead_attention") != "multihead_attention" ||
      attention->whole_or("kv_n_heads", config.heads) != config.heads) {
    attention->refuse("attn_type", "mpt has keys and values of all heads in transformers");
  }
  for (const char* const key : {"alibi_bias_max", "attn_impl", "softmax_scale"}) {
    attention->has(key);
  }
  attention->refuse_rest(false);
  return config;
}

}  // namespace stageline
