// Sizes of a block on one rank, from which its kernels, kept bytes and collectives follow. For the
// files of this folder only.
//
// One rank of a tensor-parallel group of t has its heads, its columns of the products that open a
// half of the block and its rows of those that close it (Megatron-LM, arXiv 1909.08053). Where t
// exceeds the heads for keys and values, each rank has one of them. The products that make the
// vectors of low rank of latent attention, the router and the norms are on every rank.
//
// Experts are divided by a tensor degree of their own, etp, which is t by default as in
// Megatron-LM. With T tokens of a context-parallel rank each of its t ranks routes T/t of them, so
// that the ep·etp ranks which hold all experts have ep·etp·T/t. Each of the ep parts works on an
// equal share of their rows, with 1/etp of an expert's columns: etp·T/t·topk rows, and a product as
// large as with etp = t.
#pragma once

#include <cstdint>

#include "cost_models/transformers/kernels.hpp"

namespace stageline {

/// Sizes are whole; products of them are computed in doubles.
inline double real(std::int64_t number) { return static_cast<double>(number); }

inline constexpr double log_sum_exp_bytes = 4;  // of fused attention, a token and head
inline constexpr double single_bytes = 4;       // an element of fp32, whatever the number format
inline constexpr double delta_chunk =
    64;  // tokens of a chunk of flash-linear-attention's delta rule

/// In tokens, and elements of a token.
struct RankSizes {
  double batch = 0;         // sequences
  double seq = 0;           // tokens of one, over all context-parallel ranks
  double slice_tokens = 0;  // of those, in the slice that is priced; `seq` where there is none
  double slice_begin = -1;  // tokens before it, which it attends to; -1: it is the mean one
  double tokens = 0;        // of a micro-batch (a slice) that this context-parallel rank has: M
  double norm_tokens = 0;   // those that norms and adds work on: M/t with sequence parallelism
  double hidden = 0;
  double streams = 0;  // of the residual; 0: one that is not mixed
  double tensor = 1;
  double context = 1;
  double context_heads = 1;  // of those, ranks that exchange their parts of a sequence for heads
  double context_ring = 1;   // and ranks that attend to the keys and values of each other
  double expert = 1;
  double expert_tensor = 1;
  bool sequence = false;
  double heads = 0;                // on this rank
  double key_heads = 0;            // on this rank: heads for keys and values
  double key_width = 0;            // of a head's query and key
  double value_width = 0;          // of a head's value
  double ffn = 0;                  // of a dense MLP, on this rank
  double padded_vocab = 0;         // on this rank
  double element_bytes = 2;        // of an activation and its gradient
  double product_bytes = 2;        // of an activation that a block's product keeps for W
  double operand_bytes = 2;        // of an operand of a product
  GatheredRows gathered{};         // as the form's, nothing 0
  double main_gradient_bytes = 4;  // of a weight's gradient

  /// Whether a rank sends tokens of its part of the sequence to the experts of others: else its
  /// tensor-parallel group has all experts, and gathers the tokens before they are routed.
  bool dispatches() const { return expert > 1 || expert_tensor != tensor; }
  /// Tokens of keys that a slice makes gradients of, and the mean one of as many as the last.
  double keys_reached() const { return batch * (slice_begin < 0 ? seq : slice_end()) / context; }
  double slice_end() const { return slice_begin + slice_tokens; }
  double queries() const { return heads * key_width; }
  double keys() const { return key_heads * key_width; }
  double values() const { return key_heads * value_width; }
  double attended() const { return heads * value_width; }  // attention's output
  /// Heads for keys and values that attention reads: where context-parallel ranks exchange heads
  /// and are more, each has one of its own (a copy of another's).
  double read_key_heads() const { return key_heads < context_heads ? context_heads : key_heads; }
  double read_keys() const { return read_key_heads() * key_width; }
  double read_values() const { return read_key_heads() * value_width; }
  /// Elements of a token that are exchanged for heads before attention; their gradients behind it.
  double exchanged() const { return queries() + read_keys() + read_values(); }
  double norm_elements() const { return norm_tokens * hidden; }
  /// Those that pass from block to block.
  double residual_elements() const { return (streams > 0 ? streams : 1) * norm_elements(); }
  double whole_elements() const { return tokens * hidden; }
  /// Scores of plain attention: one for each head, token and key, of earlier and later slices, too.
  double scores() const { return heads * tokens * seq; }
  /// Bytes of a tensor in the number format.
  double bytes(double elements) const { return element_bytes * elements; }
};
/// The heads are those of blocks that are not wide.
RankSizes rank_sizes(const TransformerConfig& config, const LanguageForm& form);
/// The heads are those of the block.
RankSizes rank_sizes(const TransformerConfig& config, const LanguageForm& form, std::int64_t block);

/// Whether one kernel does an expert's products and all between them (experts.cpp).
bool fuses_experts(const LanguageForm& form);
/// Whether the experts' activation is clamped by kernels of its own, which keep a copy.
bool clamps_apart(const TransformerConfig& config, const LanguageForm& form);

/// Rows that the most loaded rank's experts take over the mean, at most the form's capacity; the
/// mean's where one rank has all experts.
double expert_imbalance(const LanguageForm& form);

/// How the form's dispatcher routes tokens of a model with experts, on their way there; without
/// one, nothing is said.
TokenRouting routing_of(const TransformerConfig& config, const LanguageForm& form);

/// Experts of one rank.
struct RankExperts {
  double count = 0;  // all that the router knows
  double local = 0;  // on this rank
  double chosen = 0;
  double ffn = 0;              // of one, on this rank
  double shared_ffn = 0;       // on this rank
  double imbalance = 1;        // expert_imbalance()
  double permuted_tokens = 0;  // tokens that this rank sorts by expert before they are sent
  double routed_rows = 0;      // rows that its experts work on, one a token and chosen expert
  double padded_rows = 0;      // those of one expert, with its padding in the mean
  double received = 0;         // copies of tokens that a dispatcher brings; 0: rows come one by one
};
/// `config` has experts.
RankExperts rank_experts(const TransformerConfig& config, const LanguageForm& form,
                         const RankSizes& sizes);

/// A linear layer on one rank, which has its heads. In elements of a token.
struct RankLinear {
  double columns = 0;    // of the first product
  double convolved = 0;  // of them those that are convolved
  double read = 0;       // by the scan: queries, keys, values, and numbers a head
  double values = 0;     // the scan's output
  double states = 0;     // of the states between its chunks, each in fp32
};
RankLinear rank_linear(const LinearMixer& linear, const RankSizes& sizes);

/// Tokens that come into the latent attention's products of low rank: those of this rank's part of
/// the sequence, since the vectors of low rank are gathered, not the hidden state (Megatron-LM,
/// multi_latent_attention.py).
inline double latent_tokens(const RankSizes& sizes) { return sizes.norm_tokens; }

/// Elements of a token that sequence parallelism gathers before attention: the hidden state, or
/// the vectors of low rank and the keys' rotary part.
double gathered_width(const TransformerConfig& config, const BlockKind& kind);

}  // namespace stageline
