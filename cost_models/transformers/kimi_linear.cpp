#include "cost_models/transformers/kimi_linear.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <string>

#include "cost_models/transformers/family_blocks.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

using Keys = HuggingFaceKeys;

const std::string inner_key = "linear_attn_config";

// Blocks count from 1 here. Each must be in one of the lists.
void take_blocks(const Keys& keys, const Keys& inner, const std::string& key, Mixer mixer,
                 std::vector<BlockKind>& kinds, std::vector<int>& named) {
  for (const std::int64_t block : inner.wholes(key)) {
    if (block < 1 || as_size(block) > kinds.size()) {
      keys.refuse(inner_key, fmt::format("{} has block {}, and there are {} blocks, from 1", key,
                                         block, kinds.size()));
    }
    kinds[as_size(block - 1)].mixer = mixer;
    ++named[as_size(block - 1)];
  }
}

// False where it has no lists.
bool read_lists(const Keys& keys, const Keys& inner, std::vector<BlockKind>& kinds) {
  if (!inner.has("full_attn_layers") || !inner.has("kda_layers")) return false;
  std::vector<int> named(kinds.size(), 0);
  take_blocks(keys, inner, "full_attn_layers", Mixer::attention, kinds, named);
  take_blocks(keys, inner, "kda_layers", Mixer::linear, kinds, named);
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (named[i] == 1) continue;
    keys.refuse(inner_key, fmt::format("full_attn_layers and kda_layers name block {} {} times, "
                                       "and each block is one of the two",
                                       i + 1, named[i]));
  }
  return true;
}

}  // namespace

LinearMixer read_kimi_delta(const Keys& keys) {
  LinearMixer linear;
  linear.kind = LinearKind::kimi_delta;
  linear.heads = keys.whole_or("linear_num_heads", 32);
  std::int64_t width = keys.whole_or("linear_head_dim", 128);
  linear.taps = keys.whole_or("linear_conv_kernel_dim", 4);
  if (keys.is_object(inner_key)) {
    const std::unique_ptr<Keys> inner = keys.inside(inner_key);
    linear.heads = inner->whole_or("num_heads", linear.heads);
    width = inner->whole_or("head_dim", width);
    linear.taps = inner->whole_or("short_conv_kernel_size", linear.taps);
    inner->has("full_attn_layers");
    inner->has("kda_layers");
    inner->refuse_rest(false);
  }
  linear.key_heads = linear.heads;
  linear.key_width = linear.value_width = linear.gate_rank = width;
  return linear;
}

void read_kimi_linear(const Keys& keys, TransformerConfig& config, std::vector<BlockKind>& kinds) {
  keys.has(inner_key);
  const bool typed = keys.holds("layer_types");
  const bool listed =
      !typed && keys.is_object(inner_key) && read_lists(keys, *keys.inside(inner_key), kinds);
  if (!typed && !listed && !kinds.empty()) kinds[0].mixer = Mixer::linear;
  config.positions = Positions::none;
  if (!keys.flag_or("mla_use_nope", true)) {
    keys.refuse("mla_use_nope", "mla_use_nope must be true: its class has no positions");
  }
  if (keys.whole_or("moe_layer_freq", 1) != 1) {
    keys.refuse("moe_layer_freq",
                "moe_layer_freq must be 1: all blocks behind the first ones have "
                "experts in its class");
  }
  if (!config.experts) return;
  config.experts->groups = number_of(keys, {"num_expert_group|n_group", 1}, 1);
  config.experts->chosen_groups = number_of(keys, {"topk_group", 1}, 1);
  config.notes.emplace_back(kimi_linear_note);
}

}  // namespace stageline
