// Divides the parameters of a block into those that ranks share and those that each one has.
#include "cost_models/transformers/rank_parameters.hpp"

#include "cost_models/transformers/compressed_attention.hpp"
#include "cost_models/transformers/residual_streams.hpp"

namespace stageline {
namespace {

std::int64_t part(std::int64_t whole, std::int64_t ranks) { return (whole + ranks - 1) / ranks; }

// Those of attention that every tensor-parallel rank has.
std::int64_t replicated_attention(const TransformerConfig& config, const BlockKind& kind) {
  const std::int64_t h = config.hidden;
  if (config.compressed) return compressed_attention_replicated(config, kind);
  std::int64_t sum = config.projection_bias ? h : 0;
  if (config.latent) {
    const LatentAttention& latent = *config.latent;
    sum += h * (latent.query_rank + latent.key_value_rank + latent.rotary_width);
    if (latent.query_rank > 0) sum += norm_parameters(config, latent.query_rank);
    if (latent.index_heads > 0 &&
        kind.indexer) {  // no rank divides the indexer: its sum is over all its heads
      sum += latent.index_heads * latent.index_width * latent.query_rank +
             h * (latent.index_width + latent.index_heads) + 2 * latent.index_width;
    }
    return sum + norm_parameters(config, latent.key_value_rank);
  }
  if (config.query_key_norm != QueryKeyNorm::head) return sum;
  return sum + 2 * norm_parameters(config, config.heads_of(kind).width);
}

std::int64_t replicated_linear(const TransformerConfig& config, const LinearMixer& linear) {
  std::int64_t norm = linear.is_delta() ? linear.value_width : 0;
  norm += 2 * config.hidden * linear.gate_rank;
  if (linear.inner_norms) norm += linear.step_rank + 2 * linear.key_width;
  return norm + (linear.bias ? config.hidden : 0);
}

// The parameters of a block, without its routed experts, that every tensor-parallel rank has.
std::int64_t replicated(const TransformerConfig& config, std::int64_t block) {
  const std::int64_t h = config.hidden;
  const BlockKind kind = config.kind(block);
  std::int64_t sum = block_norms(config, block) * norm_parameters(config, h) +
                     kind.halves() * stream_parameters(config);
  if (kind.attends()) sum += replicated_attention(config, kind);
  if (kind.scans()) sum += replicated_linear(config, *config.linear);
  if (kind.feed == Feed::none) return sum;
  if (kind.feed == Feed::dense) {
    return sum + (config.mlp_bias ? h : 0) + config.activation_parameters;
  }
  const Experts& experts = *config.experts;
  sum += h * experts.known() + (has_correction(experts, block) ? experts.known() : 0);
  if (experts.shared_ffn > 0 && config.mlp_bias) sum += h;
  return sum + (experts.shared_gate ? h : 0);
}

// The parameters of keys and values beyond a rank's part, where several ranks repeat their heads.
std::int64_t repeated(const TransformerConfig& config, std::int64_t block, std::int64_t tensor) {
  const BlockKind kind = config.kind(block);
  const WideHeads its = config.heads_of(kind);
  if (config.latent || config.compressed || tensor <= its.kv_heads || !kind.attends()) return 0;
  const std::int64_t of_a_head = (its.width + (its.values_are_keys ? 0 : its.value_width)) *
                                 (config.hidden + (config.query_key_value_bias ? 1 : 0));
  return of_a_head - part(of_a_head * its.kv_heads, tensor);
}

}  // namespace

RankParameters parameters_of_block(const TransformerConfig& config, const Sharding& sharding,
                                   std::int64_t block) {
  const std::int64_t experts = expert_parameters(config, block);
  const std::int64_t on_all = replicated(config, block);
  const std::int64_t divided = block_parameters(config, block) - experts - on_all;
  RankParameters rank;
  if (experts > 0) {
    const std::int64_t bias = config.mlp_bias ? config.hidden : 0;  // behind the rows' product
    const std::int64_t one = experts / config.experts->count;
    rank.experts = part(config.experts->count, sharding.expert) *
                   (part(one - bias, sharding.expert_tensor_ranks()) + bias);
  }
  rank.all = on_all + part(divided, sharding.tensor) + repeated(config, block, sharding.tensor) +
             rank.experts;
  return rank;
}

std::int64_t parameters_of_embedding(const TransformerConfig& config, const Sharding& sharding) {
  std::int64_t sum = part(config.vocab, sharding.tensor) * config.hidden;
  if (config.positions == Positions::learned) sum += config.places * config.hidden;
  sum += config.token_types * config.hidden;
  return sum + (config.embedding_norm ? norm_parameters(config, config.hidden) : 0);
}

std::int64_t parameters_of_head(const TransformerConfig& config, const Sharding& sharding) {
  return part(config.vocab, sharding.tensor) * (config.hidden + (config.head_bias ? 1 : 0)) +
         head_extras(config);
}

std::int64_t parameters_of_last_norm(const TransformerConfig& config) {
  return norm_parameters(config, config.hidden);
}

}  // namespace stageline
