// Attention within a window and to compressed keys (DeepSeek-V4; transformers 5.24,
// src/transformers/models/deepseek_v4/modular_deepseek_v4.py, read 2026-12-01). For the files of
// this folder only.
//
//   query_down ─► norm ─┬─► query_up ─► norm ─► rotary ────────────┐
//   key_value ─► norm ──┼─► rotary ────────────────────────────────┼─► attention ─► rotary back
//   compressor ─► weighed sums ─► norm ─► rotary ──────────────────┘       ▲            │
//                       └─► indexer: index_queries, index_keys, scores ────┘            ▼
//                                                          projection ◄── output_down (by groups)
//
// Among tensor-parallel ranks each has its heads and groups; the vectors of low rank, keys and
// values, compressor and indexer are on every rank, of its own part of the sequence (assumed, as
// Megatron-LM has it for latent attention).
#pragma once

#include "cost_models/transformers/passes.hpp"

namespace stageline {

/// Tokens of a compressed key; 0 without compression.
double compression_rate(const CompressedAttention& attention, Compression compression);

/// Weights of a block's products, and all its parameters: with norms, sinks, and biases of the
/// places in a compressed key.
std::int64_t compressed_attention_weights(const TransformerConfig& config, const BlockKind& kind);
std::int64_t compressed_attention_parameters(const TransformerConfig& config,
                                             const BlockKind& kind);
/// Those of them that every tensor-parallel rank has.
std::int64_t compressed_attention_replicated(const TransformerConfig& config,
                                             const BlockKind& kind);

/// As attention_products() of config.hpp.
double compressed_attention_products(const TransformerConfig& config, const BlockKind& kind,
                                     std::int64_t seq);

/// Elements of a token that sequence parallelism gathers: low rank, keys, compressed keys and what
/// the indexer makes of the hidden state.
double compressed_gathered_width(const TransformerConfig& config, const BlockKind& kind);

/// From the normed hidden state to the output of the projection.
void add_compressed_attention(LayerKernels& passes, const TransformerConfig& config,
                              const LanguageForm& form, std::int64_t block);

/// Elements that a rank keeps, and of those the ones that W reads, with the gradients that it
/// needs. Without the hidden state that its products read.
struct CompressedKept {
  double kept = 0;  // read by the products not
  double for_products = 0;
  double output_gradients = 0;
};
CompressedKept kept_by_compressed_attention(const TransformerConfig& config, const RankSizes& sizes,
                                            const BlockKind& kind);

/// Throws UsageError where degrees, slices or the kernel do not go with it.
void check_compressed_form(const TransformerConfig& config, const LanguageForm& form);
/// Throws UsageError unless the sizes are within limits and fit together.
void check_compressed(const TransformerConfig& config, const CompressedAttention& attention);

}  // namespace stageline
