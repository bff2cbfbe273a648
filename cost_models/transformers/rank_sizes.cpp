// Sizes of a block on one rank.
#include "cost_models/transformers/rank_sizes.hpp"

#include <algorithm>

#include "cost_models/network/dispatch.hpp"
#include "cost_models/transformers/compressed_attention.hpp"

namespace stageline {
namespace {

// Tokens of a chunk, between which a scan passes on its state: of Mamba 2 (chunk_size of its
// published configurations).
constexpr double scan_chunk = 256;

constexpr std::int64_t vocab_step = 128;  // Megatron-LM's --make-vocab-size-divisible-by

RankSizes sizes_with(const TransformerConfig& config, const LanguageForm& form,
                     const WideHeads& heads) {
  RankSizes sizes;
  sizes.batch = real(form.batch);
  sizes.seq = real(form.seq > 0 ? form.seq : config.seq);
  sizes.tensor = form.sharding.tensor;
  sizes.context = form.sharding.context;
  if (form.context_exchange == ContextExchange::all_to_all) sizes.context_heads = sizes.context;
  if (form.context_exchange == ContextExchange::hierarchical && sizes.context > 1) {
    sizes.context_heads = form.context_part;
  }
  sizes.context_ring = sizes.context / sizes.context_heads;
  sizes.expert = form.sharding.expert;
  sizes.expert_tensor = form.sharding.expert_tensor_ranks();
  sizes.sequence = form.sharding.sequence && form.sharding.tensor > 1;
  const SequenceSlice& slice = form.slice;
  sizes.slice_tokens = slice.tokens_of(sizes.seq);
  if (slice.count > 1 && slice.number >= 0) {
    sizes.slice_begin = slice.tokens > 0 ? real(slice.begin) : sizes.slice_tokens * slice.number;
  }
  sizes.tokens = sizes.batch * sizes.slice_tokens / sizes.context;
  sizes.norm_tokens = sizes.sequence ? sizes.tokens / sizes.tensor : sizes.tokens;
  sizes.hidden = real(config.hidden);
  sizes.streams = real(config.streams);
  sizes.element_bytes = form.element_bytes;
  sizes.product_bytes = form.product_bytes > 0 ? form.product_bytes : form.element_bytes;
  sizes.operand_bytes = form.operand_bytes > 0 ? form.operand_bytes : form.element_bytes;
  sizes.main_gradient_bytes = form.main_gradient_bytes;
  sizes.gathered = form.gathered;
  if (sizes.gathered.bytes <= 0) sizes.gathered.bytes = form.element_bytes;
  if (sizes.gathered.gradient_bytes <= 0) sizes.gathered.gradient_bytes = form.element_bytes;
  sizes.heads = real(config.heads) / sizes.tensor;
  if (config.latent) {
    sizes.key_heads = sizes.heads;
    sizes.key_width = real(config.latent->plain_width + config.latent->rotary_width);
    sizes.value_width = real(config.latent->value_width);
  } else {
    sizes.key_heads = std::max(real(heads.kv_heads) / sizes.tensor, 1.0);
    sizes.key_width = real(heads.width);
    sizes.value_width = real(heads.value_width);
  }
  sizes.ffn = real(config.ffn) / sizes.tensor;
  const std::int64_t step = vocab_step * form.sharding.tensor;
  sizes.padded_vocab = real((config.vocab + step - 1) / step * step) / sizes.tensor;
  return sizes;
}

}  // namespace

RankSizes rank_sizes(const TransformerConfig& config, const LanguageForm& form) {
  return sizes_with(config, form, config.heads_of({}));
}

RankSizes rank_sizes(const TransformerConfig& config, const LanguageForm& form,
                     std::int64_t block) {
  return sizes_with(config, form, config.heads_of(config.kind(block)));
}

bool fuses_experts(const LanguageForm& form) { return form.graphs == CudaGraphs::full; }

bool clamps_apart(const TransformerConfig& config, const LanguageForm& form) {
  return config.clamped && config.gated && !fuses_experts(form);
}

double expert_imbalance(const LanguageForm& form) {
  const double load = form.sharding.expert > 1 ? form.imbalance : 1;
  return form.capacity > 0 ? std::min(load, form.capacity) : load;
}

TokenRouting routing_of(const TransformerConfig& config, const LanguageForm& form) {
  TokenRouting routing;
  if (form.dispatcher.empty()) return routing;
  routing.dispatcher = form.dispatcher;
  routing.chosen = static_cast<int>(config.experts->chosen);
  routing.groups = static_cast<int>(config.experts->groups);
  routing.chosen_groups = static_cast<int>(config.experts->chosen_groups);
  return routing;
}

RankExperts rank_experts(const TransformerConfig& config, const LanguageForm& form,
                         const RankSizes& sizes) {
  RankExperts experts;
  experts.count = real(config.experts->known());
  experts.local = real(config.experts->count) / sizes.expert;
  experts.chosen = real(config.experts->chosen);
  experts.ffn = real(config.experts->ffn) / sizes.expert_tensor;
  experts.shared_ffn = real(config.experts->shared_ffn) / sizes.tensor;
  experts.imbalance = expert_imbalance(form);
  experts.permuted_tokens = sizes.dispatches() ? sizes.norm_tokens : sizes.tokens;
  experts.routed_rows = sizes.tokens * experts.chosen * experts.imbalance;
  if (form.sharding.folded()) experts.routed_rows *= sizes.expert_tensor / sizes.tensor;
  // Remainders of an expert's rows are evenly spread.
  experts.padded_rows = experts.routed_rows / experts.local + (form.expert_padding - 1) / 2.0;
  if (!form.dispatcher.empty() && form.sharding.expert > 1) {
    const double copies = sizes.expert * chance_of_part(routing_of(config, form), sizes.expert);
    experts.received = experts.routed_rows * copies / experts.chosen;
  }
  return experts;
}

RankLinear rank_linear(const LinearMixer& linear, const RankSizes& sizes) {
  RankLinear rank;
  const double low_ranks = 2 * real(linear.gate_rank);  // which all ranks have
  rank.columns = (real(linear.columns()) - low_ranks) / sizes.tensor + low_ranks;
  rank.convolved = real(linear.convolved()) / sizes.tensor;
  rank.values = real(linear.values()) / sizes.tensor;
  const double a_head = real(linear.heads) / sizes.tensor;
  rank.read = (2 * real(linear.keys()) + real(linear.values())) / sizes.tensor + 2 * a_head;
  const double chunk = linear.is_delta() ? delta_chunk : scan_chunk;
  if (linear.kind == LinearKind::selective) {  // steps, values, and B and C, which all ranks have
    rank.read = 2 * rank.values + 2 * real(linear.key_width);
  }
  if (linear.kind == LinearKind::convolution) {
    rank.read = 2 * rank.values;  // two gates, each a product with what is there
    return rank;
  }
  rank.states = rank.values * real(linear.key_width) / chunk;
  return rank;
}

double gathered_width(const TransformerConfig& config, const BlockKind& kind) {
  if (config.compressed) return compressed_gathered_width(config, kind);
  if (!config.latent) return real(config.hidden);
  const LatentAttention& latent = *config.latent;
  return real((latent.query_rank > 0 ? latent.query_rank : config.hidden) + latent.key_value_rank +
              latent.rotary_width);
}

}  // namespace stageline
