// Parameters and model FLOPs of a language model, from its sizes.
#include "cost_models/transformers/config.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "cost_models/transformers/compressed_attention.hpp"
#include "cost_models/transformers/residual_streams.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

double in_double(std::int64_t number) { return static_cast<double>(number); }

// Weights of attention's products with the hidden state, those of latent attention with its low
// ranks: one multiply-accumulate a token each.
std::int64_t attention_weights(const TransformerConfig& config, const BlockKind& kind) {
  const std::int64_t h = config.hidden;
  if (config.compressed) return compressed_attention_weights(config, kind);
  if (!config.latent) {
    const WideHeads its = config.heads_of(kind);
    const std::int64_t queries = config.heads * its.width;
    const std::int64_t keys_and_values =
        its.kv_heads * (its.width + (its.values_are_keys ? 0 : its.value_width));
    const std::int64_t attended = config.heads * its.value_width;
    const std::int64_t gate = config.attention_gate ? attended : 0;
    return h * (queries + gate + keys_and_values) + attended * h;
  }
  const LatentAttention& latent = *config.latent;
  const std::int64_t queries = config.heads * (latent.plain_width + latent.rotary_width);
  const std::int64_t query =
      latent.query_rank == 0 ? h * queries : h * latent.query_rank + latent.query_rank * queries;
  const std::int64_t down = h * (latent.key_value_rank + latent.rotary_width);
  const std::int64_t up =
      latent.key_value_rank * config.heads * (latent.plain_width + latent.value_width);
  return query + down + up + config.heads * latent.value_width * h;
}

// Weights of the indexer of sparse attention, where the block has its own.
std::int64_t indexer_weights(const TransformerConfig& config, const BlockKind& kind) {
  if (!config.latent || config.latent->index_heads == 0 || !kind.indexer) return 0;
  const LatentAttention& latent = *config.latent;
  return latent.index_heads * latent.index_width * latent.query_rank +
         config.hidden * (latent.index_width + latent.index_heads);
}

// The products; a convolution has a multiply-accumulate a weight and token, too.
std::int64_t linear_weights(const TransformerConfig& config, const LinearMixer& linear) {
  std::int64_t sum =
      config.hidden * (linear.columns() + linear.values()) + linear.taps * linear.convolved();
  if (linear.kind == LinearKind::selective) {
    sum += linear.values() * (2 * linear.step_rank + 2 * linear.key_width);
  }
  if (linear.kind == LinearKind::kimi_delta) {  // decays, and the output's gate
    sum += linear.gate_rank * (linear.keys() + linear.values());
  }
  return sum;
}

// Biases, norms, and numbers a head: of the delta rule and of Mamba a decay and a bias of the time
// step, of Mamba also what passes by the state; of Mamba 1 a decay an element of the state.
std::int64_t linear_extras(const TransformerConfig& config, const LinearMixer& linear) {
  std::int64_t sum = linear.convolution_bias ? linear.convolved() : 0;
  if (linear.bias) sum += linear.columns() + config.hidden;
  switch (linear.kind) {
    case LinearKind::delta_net:
      return sum + 2 * linear.heads + linear.value_width;
    case LinearKind::mamba:
      return sum + 3 * linear.heads + (linear.norm ? linear.values() : 0);
    case LinearKind::lightning:
      return sum + linear.values();
    case LinearKind::selective:
      if (linear.inner_norms) sum += linear.step_rank + 2 * linear.key_width;
      return sum + linear.values() * (2 + linear.key_width);
    case LinearKind::convolution:
      return sum;
    case LinearKind::kimi_delta:  // a bias of each decay, a scale a head, the output's norm
      return sum + linear.keys() + linear.heads + linear.value_width;
  }
  return sum;  // unreachable; g++ wants it
}

std::int64_t query_key_norm_parameters(const TransformerConfig& config, const WideHeads& its) {
  switch (config.query_key_norm) {
    case QueryKeyNorm::none:
    case QueryKeyNorm::bare:
      return 0;
    case QueryKeyNorm::head:
      return 2 * norm_parameters(config, its.width);
    case QueryKeyNorm::all:
      return norm_parameters(config, config.heads * its.width) +
             norm_parameters(config, its.kv_heads * its.width);
    case QueryKeyNorm::each:
      return (config.heads + its.kv_heads) * its.width;
  }
  return 0;  // unreachable; g++ wants it
}

// Biases, and the norms inside attention.
std::int64_t attention_extras(const TransformerConfig& config, const BlockKind& kind) {
  if (config.compressed) {
    return compressed_attention_parameters(config, kind) -
           compressed_attention_weights(config, kind);
  }
  std::int64_t sum = config.projection_bias ? config.hidden : 0;
  if (config.latent) {
    const LatentAttention& latent = *config.latent;
    if (latent.query_rank > 0) sum += norm_parameters(config, latent.query_rank);
    if (latent.index_heads > 0 && kind.indexer) sum += 2 * latent.index_width;  // norm of its keys
    return sum + norm_parameters(config, latent.key_value_rank);
  }
  const WideHeads its = config.heads_of(kind);
  if (config.query_key_value_bias) {
    sum += (config.heads + its.kv_heads) * its.width;
    if (!its.values_are_keys) sum += its.kv_heads * its.value_width;
  }
  if (config.query_key_value_bias && config.attention_gate) {
    sum += config.heads * its.value_width;
  }
  sum += query_key_norm_parameters(config, its);
  if (config.sinks || (config.window_sinks && kind.window)) sum += config.heads;
  if (config.inner_norms) sum += norm_parameters(config, config.heads * its.value_width);
  return sum;
}

// Weights of the first half of a block.
std::int64_t mixer_weights(const TransformerConfig& config, std::int64_t block) {
  const BlockKind kind = config.kind(block);
  std::int64_t sum = 0;
  if (kind.attends()) sum += attention_weights(config, kind) + indexer_weights(config, kind);
  if (kind.scans()) sum += linear_weights(config, *config.linear);
  return sum;
}

std::int64_t mixer_parameters(const TransformerConfig& config, std::int64_t block) {
  const BlockKind kind = config.kind(block);
  std::int64_t sum = mixer_weights(config, block);
  if (kind.attends()) sum += attention_extras(config, kind);
  if (kind.scans()) sum += linear_extras(config, *config.linear);
  return sum;
}

std::int64_t mlp_weights(const TransformerConfig& config, std::int64_t ffn) {
  return (config.gated ? 3 : 2) * config.hidden * ffn;
}

std::int64_t mlp_parameters(const TransformerConfig& config, std::int64_t ffn) {
  const std::int64_t biases = config.mlp_bias ? (config.gated ? 2 : 1) * ffn + config.hidden : 0;
  return mlp_weights(config, ffn) + biases + config.activation_parameters +
         (config.inner_norms ? norm_parameters(config, ffn) : 0);
}

// Parameters of a block's router, shared experts and the like, where it has experts.
std::int64_t routing_parameters(const TransformerConfig& config, const Experts& experts,
                                std::int64_t block) {
  std::int64_t sum = config.hidden * experts.known();
  if (has_correction(experts, block)) sum += experts.known();
  if (experts.shared_ffn > 0) sum += mlp_parameters(config, experts.shared_ffn);
  if (experts.shared_gate) sum += config.hidden;
  return sum;
}

// Limits that keep layers · experts · 3 · hidden · ffn below 2^60.
constexpr std::int64_t most_layers = 1 << 12;
constexpr std::int64_t most_hidden = 1 << 16;
constexpr std::int64_t most_heads = 1 << 12;
constexpr std::int64_t most_head_width = 1 << 12;
constexpr std::int64_t most_ffn = 1 << 18;
constexpr std::int64_t most_vocab = 1 << 22;
constexpr std::int64_t most_tokens = 1 << 24;  // of a sequence
constexpr std::int64_t most_experts = 1 << 12;
constexpr std::int64_t most_taps = 1 << 10;
constexpr std::int64_t most_streams = 64;

struct Limit {
  std::string_view what;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

void check_limit(const TransformerConfig& config, const Limit& limit) {
  if (limit.value >= limit.least && limit.value <= limit.most) return;
  throw UsageError(fmt::format("{}: {} must be from {} to {}, and it is {}", config.name,
                               limit.what, limit.least, limit.most, limit.value));
}

void check_experts(const TransformerConfig& config, const Experts& experts) {
  const std::array<Limit, 9> limits = {{
      {"experts", experts.count, 1, most_experts},
      {"experts that do nothing", experts.zero, 0, most_experts},
      {"expert_groups", experts.groups, 1, most_experts},
      {"topk_groups", experts.chosen_groups, 1, experts.groups},
      {"topk", experts.chosen, 1, most_experts},
      {"expert_ffn", experts.ffn, 1, most_ffn},
      {"shared_ffn", experts.shared_ffn, 0, most_ffn},
      {"dense_blocks", experts.dense_blocks, 0, most_layers},
      {"the distance of blocks with experts", experts.every, 1, most_layers},
  }};
  for (const Limit& limit : limits) check_limit(config, limit);
  if (experts.chosen > experts.count) {
    throw UsageError(fmt::format("{}: a token can choose at most all {} experts, and topk is {}",
                                 config.name, experts.count, experts.chosen));
  }
  if (experts.count % experts.groups != 0) {
    throw UsageError(
        fmt::format("{}: experts must be a multiple of expert_groups, and {} is not one of {}",
                    config.name, experts.count, experts.groups));
  }
  const std::int64_t choice = experts.count / experts.groups * experts.chosen_groups;
  if (experts.chosen > choice) {
    throw UsageError(fmt::format(
        "{}: a token's {} experts are in {} of {} groups, which have only {}; give more topk_groups",
        config.name, experts.chosen, experts.chosen_groups, experts.groups, choice));
  }
  if (experts.dense_blocks > config.layers) {
    throw UsageError(fmt::format("{}: dense_blocks is {}, and there are only {} layers",
                                 config.name, experts.dense_blocks, config.layers));
  }
  if (experts.shared_gate && experts.shared_ffn == 0) {
    throw UsageError(fmt::format(
        "{}: a gate of the shared experts needs shared experts, and shared_ffn is 0", config.name));
  }
}

void check_latent(const TransformerConfig& config, const LatentAttention& latent) {
  const std::array<Limit, 8> limits = {{
      {"the rank of queries", latent.query_rank, 0, most_hidden},
      {"the rank of keys and values", latent.key_value_rank, 1, most_hidden},
      {"a head's width without positions", latent.plain_width, 1, most_head_width},
      {"a head's rotary width", latent.rotary_width, 0, most_head_width},
      {"a head's width of values", latent.value_width, 1, most_head_width},
      {"the indexer's heads", latent.index_heads, 0, most_heads},
      {"a width of the indexer's heads", latent.index_width, 0, most_head_width},
      {"the keys that the indexer takes", latent.index_keys, 0, most_tokens},
  }};
  for (const Limit& limit : limits) check_limit(config, limit);
}

void check_linear(const TransformerConfig& config, const LinearMixer& linear) {
  const std::array<Limit, 7> limits = {{
      {"the heads of linear layers", linear.heads, 1,
       linear.value_width > 1 ? most_heads : most_ffn},
      {"the key heads of linear layers", linear.key_heads, 1, most_heads},
      {"the width of a linear layer's key", linear.key_width, 1, most_head_width},
      {"the width of a linear layer's value", linear.value_width, 1, most_head_width},
      {"the taps of a convolution", linear.taps, 0, most_taps},
      {"the rank of time steps", linear.step_rank, 0, most_hidden},
      {"the rank of decays", linear.gate_rank, 0, most_hidden},
  }};
  for (const Limit& limit : limits) check_limit(config, limit);
}

void check_wide(const TransformerConfig& config, const WideHeads& wide) {
  check_limit(config, {"kv_heads of wide heads", wide.kv_heads, 1, most_heads});
  check_limit(config, {"the width of wide heads", wide.width, 1, most_head_width});
  check_limit(config, {"the width of wide heads' values", wide.value_width, 0, most_head_width});
  if (config.heads % wide.kv_heads == 0) return;
  throw UsageError(fmt::format(
      "{}: heads must be a multiple of the wide heads for keys and values, and {} is not "
      "one of {}",
      config.name, config.heads, wide.kv_heads));
}

}  // namespace

std::int64_t norm_parameters(const TransformerConfig& config, std::int64_t width) {
  switch (config.norm) {
    case NormKind::layer:
      return 2 * width;
    case NormKind::rms:
    case NormKind::layer_weight:
      return width;
    case NormKind::bare:
      return 0;
  }
  return width;  // unreachable; g++ wants it
}

std::int64_t block_norms(const TransformerConfig& config, std::int64_t block) {
  const BlockKind kind = config.kind(block);
  const int halves = kind.halves();
  const int first = block == 0 && !config.first_norm ? 1 : 0;
  const int before = config.norms_before ? (config.one_norm ? 1 : halves) - first : 0;
  const std::int64_t of_experts = kind.feed == Feed::experts ? config.experts->norms : 0;
  return before + (config.norms_behind ? halves : 0) + of_experts;
}

bool has_correction(const Experts& experts, std::int64_t block) {
  return experts.correction_bias && block >= experts.hashed_blocks;
}

std::int64_t head_extras(const TransformerConfig& config) {
  const std::int64_t h = config.hidden;
  const std::int64_t norm = norm_parameters(config, h);
  const std::int64_t dense = h * h + (config.mlp_bias ? h : 0) + norm;
  return (config.last_norm ? norm : 0) + (config.head_dense ? dense : 0) +
         head_stream_parameters(config);
}

std::int64_t expert_parameters(const TransformerConfig& config, std::int64_t block) {
  if (!config.has_experts(block)) return 0;
  return config.experts->count * mlp_parameters(config, config.experts->ffn);
}

std::int64_t block_parameters(const TransformerConfig& config, std::int64_t block) {
  std::int64_t sum = block_norms(config, block) * norm_parameters(config, config.hidden);
  const Feed feed = config.kind(block).feed;
  if (feed == Feed::experts) {
    sum += expert_parameters(config, block) + routing_parameters(config, *config.experts, block);
  }
  if (feed == Feed::dense) sum += mlp_parameters(config, config.ffn);
  return sum + mixer_parameters(config, block) +
         config.kind(block).halves() * stream_parameters(config);
}

std::int64_t parameters(const TransformerConfig& config) {
  const std::int64_t table = config.vocab * config.hidden;
  std::int64_t sum = config.tied ? table : 2 * table;
  if (config.positions == Positions::learned) sum += config.places * config.hidden;
  sum += config.token_types * config.hidden;
  if (config.head_bias) sum += config.vocab;
  if (config.embedding_norm) sum += norm_parameters(config, config.hidden);
  sum += head_extras(config);
  for (std::int64_t i = 0; i < config.layers; ++i) sum += block_parameters(config, i);
  return sum;
}

std::int64_t active_parameters(const TransformerConfig& config) {
  std::int64_t sum = parameters(config);
  if (!config.experts) return sum;
  const std::int64_t idle = config.experts->count - config.experts->chosen;
  const std::int64_t expert = mlp_parameters(config, config.experts->ffn);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    if (config.has_experts(i)) sum -= idle * expert;
  }
  return sum;
}

std::int64_t prediction_parameters(const TransformerConfig& config) {
  const std::int64_t h = config.hidden;
  const std::int64_t module = block_parameters(config, config.layers) + 2 * h * h +
                              3 * norm_parameters(config, h) + head_stream_parameters(config);
  return config.prediction_modules * module;
}

void check(const TransformerConfig& config) {
  const std::array<Limit, 11> limits = {{
      {"layers", config.layers, 1, most_layers},
      {"hidden", config.hidden, 1, most_hidden},
      {"heads", config.heads, 1, most_heads},
      {"kv_heads", config.kv_heads, 1, most_heads},
      {"head_width", config.head_width, 1, most_head_width},
      {"the width of a head's value", config.value_width, 0, most_head_width},
      {"ffn", config.ffn, 1, most_ffn},
      {"vocab", config.vocab, 1, most_vocab},
      {"window", config.window, 0, most_tokens},
      {"the modules that predict further tokens", config.prediction_modules, 0, most_layers},
      {"seq", config.seq, 1, most_tokens},
  }};
  for (const Limit& limit : limits) check_limit(config, limit);
  check_limit(config,
              {"the distance of blocks with a window", config.window_every, 1, most_layers});
  if (config.heads % config.kv_heads != 0) {
    throw UsageError(
        fmt::format("{}: heads must be a multiple of kv_heads, since so many heads share the keys "
                    "and values of one, and {} is not one of {}",
                    config.name, config.heads, config.kv_heads));
  }
  if (config.wide) check_wide(config, *config.wide);
  if (config.positions == Positions::learned) {
    check_limit(config, {"the table of positions", config.places, 1, most_tokens});
  }
  if (config.latent) check_latent(config, *config.latent);
  if (config.compressed) check_compressed(config, *config.compressed);
  check_limit(config, {"the residual's streams", config.streams, 0, most_streams});
  if (config.experts) check_experts(config, *config.experts);
  if (config.linear) check_linear(config, *config.linear);
}

double attention_products(const TransformerConfig& config, std::int64_t block, std::int64_t seq) {
  const BlockKind kind = config.kind(block);
  double products = 0;
  if (kind.scans() && config.linear->kind != LinearKind::convolution) {
    const int passes = config.linear->is_delta() ? 3 : 2;
    products += passes * in_double(config.linear->values()) * in_double(config.linear->key_width);
  }
  if (!kind.attends()) return products;
  if (config.compressed) return products + compressed_attention_products(config, kind, seq);
  const WideHeads its = config.heads_of(kind);
  const std::int64_t query_width =
      config.latent ? config.latent->plain_width + config.latent->rotary_width : its.width;
  const std::int64_t value_width = config.latent ? config.latent->value_width : its.value_width;
  std::int64_t keys = config.has_window(block) ? std::min(config.window, seq) : seq;
  if (config.latent && config.latent->index_heads > 0) {
    if (kind.indexer) {
      products += in_double(config.latent->index_heads) * in_double(config.latent->index_width) *
                  in_double(keys);
    }
    keys = std::min(config.latent->index_keys, keys);
  }
  return products +
         in_double(config.heads) * in_double(query_width + value_width) * in_double(keys);
}

double model_flops(const TransformerConfig& config, std::int64_t seq, std::int64_t sequences) {
  return model_flops(config, config.layers, seq, sequences);
}

double model_flops(const TransformerConfig& config, std::int64_t blocks, std::int64_t seq,
                   std::int64_t sequences) {
  // Products of the forward, a token.
  double products = static_cast<double>(config.hidden) * static_cast<double>(config.vocab);
  for (std::int64_t i = 0; i < blocks; ++i) {
    std::int64_t weights = mixer_weights(config, i);
    if (config.streams > 0) weights += config.kind(i).halves() * stream_weights(config);
    const Feed feed = config.kind(i).feed;
    if (feed == Feed::experts) {
      const Experts& experts = *config.experts;
      weights += config.hidden * experts.known();  // the router
      weights += experts.chosen * mlp_weights(config, experts.ffn);
      weights += mlp_weights(config, experts.shared_ffn);
      if (experts.shared_gate) weights += config.hidden;
    } else if (feed == Feed::dense) {
      weights += mlp_weights(config, config.ffn);
    }
    products += static_cast<double>(weights) + attention_products(config, i, seq);
  }
  const double tokens = static_cast<double>(seq) * static_cast<double>(sequences);
  return 3 * 2 * products * tokens;  // forward and twice as much backward
}

}  // namespace stageline
