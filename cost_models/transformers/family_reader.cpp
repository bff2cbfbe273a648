// Reads the keys that a row names, and makes the kinds of the blocks of them.
#include "cost_models/transformers/family_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "cost_models/transformers/deepseek_v4.hpp"
#include "cost_models/transformers/family_blocks.hpp"
#include "cost_models/transformers/kimi_linear.hpp"
#include "cost_models/transformers/longcat_flash.hpp"
#include "cost_models/transformers/mimo_v2.hpp"
#include "cost_models/transformers/usual_sequence.hpp"
#include "cost_models/transformers/wide_heads.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

using Keys = HuggingFaceKeys;

// ---- experts ----

// moe_topk and num_shared_expert of Hunyuan may be a list of equal numbers, one a block.
std::int64_t number_or_list(const Keys& keys, const NumberKeys& of, std::int64_t least) {
  for (const std::string& key : spellings_of(of.keys)) {
    if (!keys.is_list(key)) continue;
    const std::vector<std::int64_t> list = keys.wholes(key);
    const bool equal =
        std::all_of(list.begin(), list.end(), [&](std::int64_t one) { return one == list[0]; });
    if (list.empty() || !equal || list[0] < least) {
      keys.refuse(key, fmt::format("{} must be the same number for all blocks", key));
    }
    return list[0];
  }
  return number_of(keys, of, least);
}

Experts read_experts(const Keys& keys, const ExpertKeys& of) {
  Experts experts;
  experts.count = number_or_list(keys, of.count, 0);
  experts.chosen = number_or_list(keys, of.chosen, 0);
  experts.ffn = number_or_list(keys, of.ffn, 1);
  experts.shared_ffn = of.shared_ffn.keys.empty() ? number_or_list(keys, of.shared, 0) * experts.ffn
                                                  : number_of(keys, of.shared_ffn, 0);
  experts.correction_bias = flag_of(keys, of.correction);
  experts.shared_gate = of.shared_gate && experts.shared_ffn > 0;
  if (of.groups) {
    experts.groups = std::max<std::int64_t>(number_of(keys, {"n_group", 1}, 0), 1);
    experts.chosen_groups = std::max<std::int64_t>(number_of(keys, {"topk_group", 1}, 0), 1);
  }
  return experts;
}

// ---- mixers ----

LinearMixer read_delta_net(const Keys& keys) {
  LinearMixer linear;
  linear.heads = keys.whole_or("linear_num_value_heads", 32);
  linear.key_heads = keys.whole_or("linear_num_key_heads", 16);
  linear.key_width = keys.whole_or("linear_key_head_dim", 128);
  linear.value_width = keys.whole_or("linear_value_head_dim", 128);
  linear.taps = keys.whole_or("linear_conv_kernel_dim", 4);
  return linear;
}

// The state of Granite, Bamba and Falcon-H1, whose mamba_d_head may be "auto".
LinearMixer read_mamba(const Keys& keys, std::int64_t hidden) {
  LinearMixer linear;
  linear.kind = LinearKind::mamba;
  linear.heads = keys.whole_or("mamba_n_heads", 128);
  linear.key_heads = keys.whole_or("mamba_n_groups", 1);
  linear.key_width = keys.whole_or("mamba_d_state", 256);
  std::int64_t expanded = keys.whole_or("mamba_expand", 2) * hidden;
  if (keys.type() == "falcon_h1" && !keys.is_null("mamba_d_ssm")) {
    expanded = keys.whole_or("mamba_d_ssm", 1024);
  }
  linear.value_width = keys.is_text("mamba_d_head")
                           ? expanded / linear.heads
                           : keys.whole_or("mamba_d_head", expanded / linear.heads);
  linear.taps = keys.whole_or("mamba_d_conv", 4);
  linear.convolution_bias = keys.flag_or("mamba_conv_bias", true);
  linear.bias = keys.flag_or("mamba_proj_bias", false);
  keys.has("mamba_chunk_size");
  if (keys.type() == "falcon_h1") {
    linear.norm = keys.flag_or("mamba_rms_norm", false);
    if (keys.flag_or("projectors_bias", false) != linear.bias) {
      keys.refuse("projectors_bias", "projectors_bias must be as mamba_proj_bias here");
    }
  }
  return linear;
}

// Mamba 2 alone.
LinearMixer read_mamba2(const Keys& keys) {
  LinearMixer linear;
  linear.kind = LinearKind::mamba;
  linear.heads = keys.whole_or("num_heads", 128);
  linear.key_heads = keys.whole_or("n_groups", 8);
  linear.key_width = keys.whole_or("state_size", 128);
  linear.value_width = keys.whole_or("head_dim", 64);
  linear.taps = keys.whole_or("conv_kernel", 4);
  linear.convolution_bias = keys.flag_or("use_conv_bias", true);
  linear.bias = keys.flag_or("use_bias", false);
  keys.has("expand");
  return linear;
}

// A rank that may be "auto": a sixteenth of the hidden state, rounded up.
std::int64_t step_rank(const Keys& keys, const std::string& key, std::int64_t hidden) {
  const std::int64_t usual = (hidden + 15) / 16;
  return keys.is_text(key) ? usual : keys.whole_or(key, usual);
}

// Mamba 1, alone (Mamba, Falcon-Mamba) or among attention (Jamba), which name its sizes
// differently.
LinearMixer read_selective(const Keys& keys, std::int64_t hidden) {
  const bool jamba = keys.type() == "jamba";
  LinearMixer linear;
  linear.kind = LinearKind::selective;
  linear.heads = hidden * keys.whole_or(jamba ? "mamba_expand" : "expand", 2);
  linear.key_heads = linear.value_width = 1;
  linear.key_width = keys.whole_or(jamba ? "mamba_d_state" : "state_size", 16);
  linear.taps = keys.whole_or(jamba ? "mamba_d_conv" : "conv_kernel", 4);
  linear.convolution_bias = keys.flag_or(jamba ? "mamba_conv_bias" : "use_conv_bias", true);
  linear.bias = keys.flag_or(jamba ? "mamba_proj_bias" : "use_bias", false);
  linear.step_rank = step_rank(keys, jamba ? "mamba_dt_rank" : "time_step_rank", hidden);
  linear.inner_norms = jamba;
  return linear;
}

LinearMixer read_convolution(const Keys& keys, const TransformerConfig& config) {
  LinearMixer linear;
  linear.kind = LinearKind::convolution;
  linear.heads = config.heads;
  linear.value_width = std::max<std::int64_t>(config.hidden / config.heads, 1);
  if (linear.heads * linear.value_width != config.hidden) {
    keys.refuse("num_attention_heads", "hidden_size must be a multiple of num_attention_heads");
  }
  linear.key_heads = linear.key_width = 1;
  linear.taps = keys.whole_or("conv_L_cache", 3);
  linear.convolution_bias = linear.bias = keys.flag_or("conv_bias", false);
  return linear;
}

// LFM2 takes two thirds of the width, times a factor, up to the next multiple.
std::int64_t adjusted_ffn(const Keys& keys, std::int64_t ffn) {
  const double factor = keys.real_or("block_ffn_dim_multiplier", 1);
  const std::int64_t step = keys.whole_or("block_multiple_of", 256);
  if (!keys.flag_or("block_auto_adjust_ff_dim", true)) return ffn;
  const std::int64_t thirds = 2 * ffn / 3;
  const auto width = static_cast<std::int64_t>(factor * static_cast<double>(thirds));
  return (width + step - 1) / step * step;
}

LinearMixer read_nemotron_mamba(const Keys& keys) {
  LinearMixer linear;
  linear.kind = LinearKind::mamba;
  linear.heads = keys.whole_or("mamba_num_heads", 128);
  linear.key_heads = number_of(keys, {"n_groups|mamba_n_groups", 8});
  linear.key_width = keys.whole_or("ssm_state_size", 128);
  linear.value_width = keys.whole_or("mamba_head_dim", 64);
  linear.taps = number_of(keys, {"conv_kernel|mamba_d_conv", 4});
  linear.convolution_bias = keys.flag_or("use_conv_bias", keys.flag_or("mamba_conv_bias", true));
  linear.bias = keys.flag_or("use_bias", false);
  return linear;
}

void read_linear(const Keys& keys, const FamilyRow& row, TransformerConfig& config) {
  switch (row.linear) {
    case LinearKind::delta_net:
      config.linear = read_delta_net(keys);
      return;
    case LinearKind::mamba:
      config.linear = row.filling == Filling::none           ? read_nemotron_mamba(keys)
                      : row.filling == Filling::linear_alone ? read_mamba2(keys)
                                                             : read_mamba(keys, config.hidden);
      return;
    case LinearKind::selective:
      config.linear = read_selective(keys, config.hidden);
      return;
    case LinearKind::convolution:
      config.linear = read_convolution(keys, config);
      return;
    case LinearKind::kimi_delta:
      config.linear = read_kimi_delta(keys);
      return;
    case LinearKind::lightning: {
      const std::int64_t width =
          config.head_width > 0 ? config.head_width : config.hidden / config.heads;
      config.linear = LinearMixer{.kind = LinearKind::lightning,
                                  .heads = config.heads,
                                  .key_heads = config.heads,
                                  .key_width = width,
                                  .value_width = width};
      return;
    }
  }
}

// ---- a row ----

// Where the key is missing, the number of the class; where it is null, 0: what follows from others.
std::int64_t number_or_none(const Keys& keys, const NumberKeys& of) {
  for (const std::string& key : spellings_of(of.keys)) {
    if (!keys.is_null(key)) continue;
    keys.has(key);
    return 0;
  }
  return number_of(keys, of);
}

// Helium's projection has the width of the hidden state on either side.
void check_helium(const Keys& keys, const TransformerConfig& config) {
  const std::int64_t width =
      config.head_width > 0 ? config.head_width : config.hidden / config.heads;
  if (config.heads * width == config.hidden) return;
  keys.refuse("head_dim",
              fmt::format("hidden_size must be num_attention_heads times head_dim here, and {} is "
                          "not {} times {}",
                          config.hidden, config.heads, width));
}

void read_sizes(const Keys& keys, const FamilyRow& row, TransformerConfig& config) {
  config.hidden = number_of(keys, row.hidden);
  config.heads = number_of(keys, row.heads);
  config.kv_heads = number_or_none(keys, row.kv_heads);
  config.head_width = number_or_none(keys, row.head_width);
  config.ffn = number_of(keys, row.ffn);
  config.vocab = number_of(keys, row.vocab);
  config.gated = row.gated;
  config.clamped = row.clamped;
  config.tied = flag_of(keys, row.tied);
  config.norm = row.norm;
  config.norms_before = row.norms_before;
  config.norms_behind = row.norms_behind;
  config.inner_norms = row.inner_norms;
  config.activation_parameters = row.activation_parameters;
  config.first_norm = row.first_norm;
  config.last_norm = row.last_norm;
  config.causal = !row.encoder;
  config.embedding_norm = config.head_dense = row.encoder;
  config.token_types = number_of(keys, row.token_types, 0);
  config.query_key_value_bias = flag_of(keys, row.qkv_bias);
  config.projection_bias = flag_of(keys, row.projection_bias);
  config.mlp_bias = flag_of(keys, row.mlp_bias);
  config.head_bias = flag_of(keys, row.head_bias);
  if (flag_of(keys, row.query_key_norm)) config.query_key_norm = row.norm_of_queries;
  config.parallel_residual = flag_of(keys, row.parallel);
  config.one_norm = row.one_norm && config.parallel_residual;
  config.sinks = row.sinks;
  config.attention_gate = row.attention_gate;
  config.positions = row.positions;
  config.chunked = row.chunked;
  const std::int64_t longest = number_of(keys, row.longest);
  config.seq = usual_sequence(keys, longest);
  if (config.positions == Positions::learned) config.places = longest + row.more_places;
  config.prediction_modules = number_of(keys, row.predictions, 0);
}

void take_words(const Keys& keys, const FamilyRow& row) {
  for (const std::string& key : spellings_of(row.without_effect)) keys.has(key);
  for (const std::string& key : spellings_of(row.must_be_false)) {
    if (keys.flag_or(key, false)) {
      keys.refuse(key, fmt::format("{} is true, which is not known here of model_type \"{}\"", key,
                                   keys.model_type()));
    }
  }
}

void check_opt(const Keys& keys, const TransformerConfig& config) {
  if (!keys.flag_or("do_layer_norm_before", true)) {
    keys.refuse("do_layer_norm_before",
                "norms behind attention and MLP alone are not known of opt");
  }
  for (const char* const key : {"_remove_final_layer_norm", "layer_norm_elementwise_affine"}) {
    const bool usual = std::string_view(key).starts_with("layer");
    if (keys.flag_or(key, usual) != usual) {
      keys.refuse(key, fmt::format("{} is {}, which is not known here", key, !usual));
    }
  }
  if (keys.whole_or("word_embed_proj_dim", config.hidden) != config.hidden) {
    keys.refuse("word_embed_proj_dim",
                "an embedding of another width than hidden_size is not known here");
  }
}

// GLM-5: a block without an indexer attends to the keys that the one before it took. Listed, as
// letters, or every so manyth from an offset on.
void read_indexers(const Keys& keys, std::vector<BlockKind>& kinds) {
  std::vector<std::string> types = keys.texts("indexer_types");
  if (keys.is_text("index_topk_pattern")) {
    for (const char letter : keys.text_or("index_topk_pattern", "")) {
      types.push_back(letter == 'F' ? "full" : letter == 'S' ? "shared" : std::string(1, letter));
    }
  }
  const std::int64_t every = std::max<std::int64_t>(keys.whole_or("index_topk_freq", 1, 0), 1);
  const std::int64_t offset = keys.whole_or("index_skip_topk_offset", 2, 0);
  if (!types.empty() && types.size() != kinds.size()) {
    keys.refuse("indexer_types", fmt::format("indexer_types has {} blocks, and num_hidden_layers "
                                             "is {}",
                                             types.size(), kinds.size()));
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::int64_t behind =
        std::max<std::int64_t>(static_cast<std::int64_t>(i) - offset + 1, 0);
    const std::string type = !types.empty() ? types[i] : behind % every == 0 ? "full" : "shared";
    if (type != "full" && type != "shared") {
      keys.refuse("indexer_types",
                  fmt::format("indexer_types may have full and shared, not {}", type));
    }
    if (type == "shared" && keys.type() != "glm_moe_dsa") {
      keys.refuse("indexer_types",
                  fmt::format("indexers that blocks share are not known of {}", keys.type()));
    }
    kinds[i].indexer = type == "full";
  }
  if (!kinds.empty() && !kinds[0].indexer) {
    keys.refuse("indexer_types", "the first block has no indexer, and none before it has one");
  }
}

}  // namespace

LatentAttention read_latent(const HuggingFaceKeys& keys, bool indexer) {
  LatentAttention latent;
  latent.query_rank = keys.is_null("q_lora_rank") ? 0 : keys.whole("q_lora_rank");
  latent.key_value_rank = keys.whole("kv_lora_rank");
  latent.plain_width = keys.whole("qk_nope_head_dim");
  latent.rotary_width = keys.whole("qk_rope_head_dim");
  latent.value_width = keys.whole("v_head_dim");
  if (!indexer) return latent;
  latent.index_heads = keys.whole("index_n_heads");
  latent.index_width = keys.whole("index_head_dim");
  latent.index_keys = keys.whole("index_topk");
  return latent;
}

const FamilyRow* find_family_row(std::string_view type) {
  for (const FamilyRow& row : family_rows()) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

TransformerConfig read_family(const Keys& keys, const FamilyRow& row) {
  TransformerConfig config;
  std::vector<BlockKind> kinds;
  const bool halves = row.linear == LinearKind::mamba && row.filling == Filling::none &&
                      read_halves(keys, config, kinds);
  if (!halves) config.layers = number_of(keys, row.layers);
  read_sizes(keys, row, config);
  take_words(keys, row);
  if (row.type == "opt") check_opt(keys, config);
  if (row.type == "helium") check_helium(keys, config);
  if (!halves) kinds = std::vector<BlockKind>(as_size(std::min(config.layers, most_listed)));
  if (row.latent) {
    config.latent = read_latent(keys, row.indexer);
    config.head_width = config.latent->plain_width + config.latent->rotary_width;
    config.kv_heads = config.heads;
    if (row.indexer) read_indexers(keys, kinds);
  }
  const bool linear = halves || (row.filling != Filling::none && row.filling != Filling::window);
  if (linear) read_linear(keys, row, config);
  if (!halves && !row.compressed) read_mixers(keys, row, config, kinds);
  if (row.experts != nullptr) {
    const Experts experts = read_experts(keys, *row.experts);
    if (experts.count > 0) {
      config.experts = experts;
      if (!halves && !row.compressed) read_feeds(keys, *row.experts, kinds);
    } else if (row.experts->shared_alone) {
      config.ffn = experts.shared_ffn;
    }
  }
  if (row.compressed) read_deepseek_v4(keys, config, kinds);
  if (row.type.starts_with("gemma4")) read_gemma4(keys, config, kinds);
  if (row.type == "mimo_v2_flash") read_mimo_v2(keys, config, kinds);
  if (row.type == "kimi_linear") read_kimi_linear(keys, config, kinds);
  if (row.type == "longcat_flash") read_longcat_flash(keys, config, kinds);
  set_blocks(config, kinds);
  if (std::none_of(kinds.begin(), kinds.end(),
                   [](const BlockKind& kind) { return kind.scans(); })) {
    config.linear.reset();
  }
  constexpr std::int64_t baichuan_13b = 40;  // blocks: its class has ALiBi, that of the 7B has not
  if (row.type == "baichuan" && config.layers == baichuan_13b) config.positions = Positions::alibi;
  if (row.type.starts_with("lfm2") && config.experts == std::nullopt) {
    config.ffn = adjusted_ffn(keys, config.ffn);
  }
  if (row.encoder && keys.text_or("position_embedding_type", "absolute") != "absolute") {
    keys.refuse("position_embedding_type", "positions other than absolute are not known here");
  }
  if (row.type == "granitemoehybrid" && keys.text_or("position_embedding_type", "nope") != "rope") {
    config.positions = Positions::none;
  }
  return config;
}

}  // namespace stageline
