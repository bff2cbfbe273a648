#include "cost_models/transformers/mimo_v2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace stageline {
namespace {

using Keys = HuggingFaceKeys;

// A list of zeros and ones, one a block; empty where it is missing.
std::vector<std::int64_t> read_bits(const Keys& keys, const std::string& key, std::size_t blocks) {
  std::vector<std::int64_t> bits = keys.wholes(key);
  if (bits.empty()) return bits;
  if (bits.size() != blocks) {
    keys.refuse(key, fmt::format("{} has {} blocks, and num_hidden_layers is {}", key, bits.size(),
                                 blocks));
  }
  for (const std::int64_t bit : bits) {
    if (bit != 0 && bit != 1) {
      keys.refuse(key, fmt::format("{} may have 0 and 1, not {}", key, bit));
    }
  }
  return bits;
}

void check_same(const Keys& keys, const std::string& key, const std::string& as, bool same) {
  if (same) return;
  keys.refuse(key, fmt::format("{} and {} say different things of a block; remove one", key, as));
}

// 1: a window. Where nothing is listed, the first block and every sixth have none.
void read_windows(const Keys& keys, std::vector<BlockKind>& kinds) {
  const std::vector<std::int64_t> pattern = read_bits(keys, "hybrid_layer_pattern", kinds.size());
  const bool typed = keys.holds("layer_types");
  if (!typed && pattern.empty() && !kinds.empty()) kinds[0].window = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool window = pattern[i] == 1;
    if (typed) check_same(keys, "hybrid_layer_pattern", "layer_types", kinds[i].window == window);
    kinds[i].window = window;
  }
}

void read_routed_blocks(const Keys& keys, std::vector<BlockKind>& kinds) {
  const std::vector<std::int64_t> pattern = read_bits(keys, "moe_layer_freq", kinds.size());
  const bool typed = keys.holds("mlp_layer_types");
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const Feed feed = pattern[i] == 1 ? Feed::experts : Feed::dense;
    if (typed) check_same(keys, "moe_layer_freq", "mlp_layer_types", kinds[i].feed == feed);
    kinds[i].feed = feed;
  }
}

// Sizes of heads within a window that must be those of the others.
void check_window_heads(const Keys& keys, const TransformerConfig& config) {
  struct Size {
    const char* key;
    std::int64_t usual;
    const char* as;
  };
  for (const Size& size : {Size{"swa_num_attention_heads", config.heads, "num_attention_heads"},
                           Size{"swa_head_dim", config.head_width, "head_dim"},
                           Size{"swa_v_head_dim", config.value_width, "v_head_dim"}}) {
    const std::int64_t number = keys.whole_or(size.key, size.usual);
    if (number == size.usual) continue;
    keys.refuse(size.key, fmt::format("{} is {}, and {} is {}: blocks with a window may have other "
                                      "heads for keys and values alone",
                                      size.key, number, size.as, size.usual));
  }
}

}  // namespace

void read_mimo_v2(const Keys& keys, TransformerConfig& config, std::vector<BlockKind>& kinds) {
  config.value_width = keys.whole_or("v_head_dim", 128);
  check_window_heads(keys, config);
  const std::int64_t full = config.kv_heads;
  config.kv_heads = 2 * full;
  if (keys.whole_or("swa_num_key_value_heads", 2 * full) != 2 * full) {
    keys.refuse("swa_num_key_value_heads",
                fmt::format("swa_num_key_value_heads is {}, and its class has twice "
                            "num_key_value_heads, {}",
                            keys.whole("swa_num_key_value_heads"), 2 * full));
  }
  config.wide = WideHeads{full, config.head_width, false, config.value_width};
  read_windows(keys, kinds);
  read_routed_blocks(keys, kinds);
  for (BlockKind& kind : kinds) kind.wide = !kind.window;
  const bool windows =
      std::any_of(kinds.begin(), kinds.end(), [](const BlockKind& kind) { return kind.window; });
  config.window = windows ? keys.whole_or("sliding_window", 129) : 0;
  if (keys.holds("sliding_window_size")) {  // of tokens before one, which attends to itself as well
    const std::int64_t before = keys.whole("sliding_window_size");
    if (windows) config.window = before + 1;
  }
  config.window_sinks = true;
  if (!keys.flag_or("add_swa_attention_sink_bias", true) ||
      keys.flag_or("add_full_attention_sink_bias", false)) {
    keys.refuse("add_swa_attention_sink_bias",
                "its class has sinks in blocks with a window, and in no others: "
                "add_swa_attention_sink_bias must be true, and add_full_attention_sink_bias false");
  }
  if (keys.whole_or("n_shared_experts", 0, 0) > 0) {
    keys.refuse("n_shared_experts", "n_shared_experts must be 0 or null: the class has none");
  }
  if (keys.text_or("attention_projection_layout", "split") != "split") {
    keys.refuse("attention_projection_layout", "attention_projection_layout must be \"split\"");
  }
  // Its modules that predict further tokens have a window (sgl-project/sglang's MiMoV2MTP, read
  // 2026-12-01) and a dense MLP: 0.329 billion parameters each, held against no published number.
  config.prediction_kind = BlockKind{.feed = Feed::dense, .window = config.window > 0};
  config.notes.emplace_back(mimo_v2_note);
}

}  // namespace stageline
