#include "cost_models/transformers/wide_heads.hpp"

#include <fmt/format.h>

#include <string>

namespace stageline {
namespace {

using Keys = HuggingFaceKeys;

// A number that is missing, null or 0 in a form that is priced; `usual` where it is missing.
void refuse_part(const Keys& keys, const std::string& key, std::int64_t usual, const char* what) {
  if (keys.is_null(key)) {
    keys.has(key);
    return;
  }
  const std::int64_t number = keys.whole_or(key, usual, 0);
  if (number == 0) return;
  keys.refuse(key, fmt::format("{} is {}{}: {} are not priced", key, number,
                               keys.holds(key) ? "" : ", as it is where it is missing", what));
}

// Beside the dense MLP, which all tokens pass: as a shared expert does. One norm more stands behind
// that MLP, one before the experts and one behind them, and one before the router, whose number an
// expert weighs what the expert makes.
Experts read_experts_beside(const Keys& keys, const TransformerConfig& config) {
  Experts experts;
  experts.count = keys.whole("num_experts");
  experts.chosen = keys.whole("top_k_experts");
  experts.ffn = keys.whole("moe_intermediate_size");
  experts.shared_ffn = config.ffn;
  experts.correction_bias = true;
  experts.norms = 4;
  return experts;
}

}  // namespace

void read_gemma4(const Keys& keys, TransformerConfig& config, std::vector<BlockKind>& kinds) {
  const std::int64_t usual_inputs = keys.type() == "gemma4_text" ? 256 : 0;
  refuse_part(keys, "hidden_size_per_layer_input", usual_inputs, "inputs of a block's own");
  refuse_part(keys, "num_kv_shared_layers", 0, "blocks that share keys and values");
  const std::string both_ways =
      keys.is_text("use_bidirectional_attention")
          ? keys.text_or("use_bidirectional_attention", "")
          : std::string(keys.flag_or("use_bidirectional_attention", false) ? "all" : "");
  if (!both_ways.empty() && both_ways != "vision") {  // of an image's tokens among themselves
    keys.refuse(
        "use_bidirectional_attention",
        fmt::format("use_bidirectional_attention is {}, and a decoder's attention is causal",
                    both_ways));
  }
  const bool values_are_keys = keys.flag_or("attention_k_eq_v", false);
  const std::int64_t of_wide = keys.whole_or("num_global_key_value_heads", config.kv_heads);
  config.wide = WideHeads{values_are_keys ? of_wide : config.kv_heads,
                          keys.whole_or("global_head_dim", 512), values_are_keys};
  config.value_norm = true;
  if (!kinds.empty()) kinds.back().window = false;  // whatever the list says
  for (BlockKind& kind : kinds) kind.wide = !kind.window;
  if (keys.flag_or("enable_moe_block", false)) {
    config.experts = read_experts_beside(keys, config);
    for (BlockKind& kind : kinds) kind.feed = Feed::experts;
  } else {
    for (const char* const key : {"num_experts", "top_k_experts", "moe_intermediate_size"}) {
      keys.has(key);
    }
  }
}

}  // namespace stageline
