// Parameters and model FLOPs of a language model, from its sizes.
#include "cost_models/transformers/config.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

std::int64_t norm_parameters(const TransformerConfig& config, std::int64_t width) {
  return config.norm == NormKind::layer ? 2 * width : width;
}

// Weights of attention's products with the hidden state, those of latent attention with its low
// ranks: one multiply-accumulate a token each.
std::int64_t attention_weights(const TransformerConfig& config) {
  const std::int64_t h = config.hidden;
  if (!config.latent) {
    const std::int64_t queries = config.heads * config.head_width;
    const std::int64_t keys_and_values = 2 * config.kv_heads * config.head_width;
    return h * (queries + keys_and_values) + queries * h;
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

// Biases, and the norms inside attention.
std::int64_t attention_extras(const TransformerConfig& config) {
  std::int64_t sum = config.projection_bias ? config.hidden : 0;
  if (config.latent) {
    const LatentAttention& latent = *config.latent;
    if (latent.query_rank > 0) sum += norm_parameters(config, latent.query_rank);
    return sum + norm_parameters(config, latent.key_value_rank);
  }
  if (config.query_key_value_bias) {
    sum += (config.heads + 2 * config.kv_heads) * config.head_width;
  }
  if (config.query_key_norm) sum += 2 * norm_parameters(config, config.head_width);
  if (config.sinks) sum += config.heads;
  return sum;
}

std::int64_t mlp_weights(const TransformerConfig& config, std::int64_t ffn) {
  return (config.gated ? 3 : 2) * config.hidden * ffn;
}

std::int64_t mlp_parameters(const TransformerConfig& config, std::int64_t ffn) {
  const std::int64_t biases = config.mlp_bias ? (config.gated ? 2 : 1) * ffn + config.hidden : 0;
  return mlp_weights(config, ffn) + biases;
}

// Parameters of a block's router, shared experts and the like, where it has experts.
std::int64_t routing_parameters(const TransformerConfig& config, const Experts& experts) {
  std::int64_t sum = config.hidden * experts.count;
  if (experts.correction_bias) sum += experts.count;
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
  const std::array<Limit, 8> limits = {{
      {"experts", experts.count, 1, most_experts},
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
  const std::array<Limit, 5> limits = {{
      {"the rank of queries", latent.query_rank, 0, most_hidden},
      {"the rank of keys and values", latent.key_value_rank, 1, most_hidden},
      {"a head's width without positions", latent.plain_width, 1, most_head_width},
      {"a head's rotary width", latent.rotary_width, 0, most_head_width},
      {"a head's width of values", latent.value_width, 1, most_head_width},
  }};
  for (const Limit& limit : limits) check_limit(config, limit);
}

}  // namespace

bool TransformerConfig::has_experts(std::int64_t block) const {
  if (!experts || block < experts->dense_blocks) return false;
  return (block - experts->dense_blocks + 1) % experts->every == 0;
}

bool TransformerConfig::has_window(std::int64_t block) const {
  return window > 0 && block % window_every == 0;
}

std::int64_t expert_parameters(const TransformerConfig& config, std::int64_t block) {
  if (!config.has_experts(block)) return 0;
  return config.experts->count * mlp_parameters(config, config.experts->ffn);
}

std::int64_t block_parameters(const TransformerConfig& config, std::int64_t block) {
  const std::int64_t norms = (config.norms_behind ? 4 : 2) * norm_parameters(config, config.hidden);
  const std::int64_t mlp =
      config.has_experts(block)
          ? expert_parameters(config, block) + routing_parameters(config, *config.experts)
          : mlp_parameters(config, config.ffn);
  return attention_weights(config) + attention_extras(config) + mlp + norms;
}

std::int64_t parameters(const TransformerConfig& config) {
  const std::int64_t table = config.vocab * config.hidden;
  std::int64_t sum = config.tied ? table : 2 * table;
  if (config.positions == Positions::learned) sum += config.places * config.hidden;
  sum += (config.embedding_norm ? 2 : 1) * norm_parameters(config, config.hidden);
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
  const std::int64_t module =
      block_parameters(config, config.layers) + 2 * h * h + 3 * norm_parameters(config, h);
  return config.prediction_modules * module;
}

void check(const TransformerConfig& config) {
  const std::array<Limit, 10> limits = {{
      {"layers", config.layers, 1, most_layers},
      {"hidden", config.hidden, 1, most_hidden},
      {"heads", config.heads, 1, most_heads},
      {"kv_heads", config.kv_heads, 1, most_heads},
      {"head_width", config.head_width, 1, most_head_width},
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
  if (config.positions == Positions::learned) {
    check_limit(config, {"the table of positions", config.places, 1, most_tokens});
  }
  if (config.latent) check_latent(config, *config.latent);
  if (config.experts) check_experts(config, *config.experts);
}

double attention_products(const TransformerConfig& config, std::int64_t block, std::int64_t seq) {
  const std::int64_t query_width =
      config.latent ? config.latent->plain_width + config.latent->rotary_width : config.head_width;
  const std::int64_t value_width = config.latent ? config.latent->value_width : config.head_width;
  const std::int64_t keys = config.has_window(block) ? std::min(config.window, seq) : seq;
  return static_cast<double>(config.heads) * static_cast<double>(query_width + value_width) *
         static_cast<double>(keys);
}

double model_flops(const TransformerConfig& config, std::int64_t seq, std::int64_t sequences) {
  // Products of the forward, a token.
  double products = static_cast<double>(config.hidden) * static_cast<double>(config.vocab);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    std::int64_t weights = attention_weights(config);
    if (config.has_experts(i)) {
      const Experts& experts = *config.experts;
      weights += config.hidden * experts.count;  // the router
      weights += experts.chosen * mlp_weights(config, experts.ffn);
      weights += mlp_weights(config, experts.shared_ffn);
      if (experts.shared_gate) weights += config.hidden;
    } else {
      weights += mlp_weights(config, config.ffn);
    }
    products += static_cast<double>(weights) + attention_products(config, i, seq);
  }
  const double tokens = static_cast<double>(seq) * static_cast<double>(sequences);
  return 3 * 2 * products * tokens;  // forward and twice as much backward
}

}  // namespace stageline
