// Kernels of attention: grouped-query or latent, scores in memory or fused.
//
//   grouped   qkv ─► [ norms of q and k ] ─► [ rotary ] ─► attention ─► projection
//   latent    query_down ─► norm ─► query_up ───────────┐
//             key_value_down ─► norm ─► key_value_up ───┴─► rotary, keys ─► attention ─► projection
//
// Plain attention computes the scores of all pairs of tokens, whatever the mask, in each slice; a
// fused kernel those below the diagonal, and of a sliding window those within it. Among
// context-parallel ranks the pairs are shared equally (as in Llama 3, arXiv 2407.21783, each has
// two pieces of a sequence, one from either end), or all wait for the last one, whose single piece
// attends to most; ranks that exchange heads have the whole sequence. Slices of a sequence have
// unequal ones: the first attends to itself, the last to all before it. Documents that a sequence
// packs attend to themselves; plain attention computes all pairs of the sequence all the same.
#include <algorithm>
#include <cmath>

#include "cost_models/transformers/compressed_attention.hpp"
#include "cost_models/transformers/passes.hpp"

namespace stageline {
namespace {

constexpr double plain_backward = 2;  // FLOPs over the forward's

Kernel attention_kernel(std::string_view name, KernelKind kind, double flops, bool selective) {
  Kernel kernel;
  kernel.name = name;
  kernel.kind = kind;
  kernel.flops = flops;
  kernel.selective = selective;
  return kernel;
}

void add_plain(LayerKernels& passes, const RankSizes& sizes, const BlockTraffic& traffic) {
  const double scores = 2 * sizes.scores() * sizes.key_width;
  const double context = 2 * sizes.scores() * sizes.value_width;
  const double softmax = sizes.bytes(sizes.scores());
  passes.forward.push_back(attention_kernel("scores", KernelKind::attention_plain, scores, true));
  passes.forward.push_back(elementwise("softmax", softmax * traffic.softmax.forward));
  passes.forward.back().selective = true;
  passes.forward.push_back(attention_kernel("context", KernelKind::attention_plain, context, true));
  passes.input_grad.push_back(
      attention_kernel("scores", KernelKind::attention_plain, plain_backward * scores, false));
  passes.input_grad.push_back(elementwise("softmax", softmax * traffic.softmax.input_grad));
  passes.input_grad.push_back(
      attention_kernel("context", KernelKind::attention_plain, plain_backward * context, false));
}

// Pairs of a token and a key before it that it attends to, of one sequence.
// Without a causal mask those behind it, too; a window then has half of its tokens on either side.
double attended_pairs(double seq, double window, bool chunked, bool causal) {
  const double reach = window > 0 ? std::min(window, seq) : seq;
  if (!causal) return window > 0 && window < seq ? reach * seq - reach * reach / 4 : seq * seq;
  return chunked ? reach * seq / 2 : reach * seq - reach * reach / 2;
}

// Those of the first tokens alone.
double pairs_before(double tokens, double window, bool chunked) {
  if (window <= 0 || tokens <= window) return tokens * tokens / 2;
  if (!chunked) return window * tokens - window * window / 2;
  const double whole = std::floor(tokens / window);
  const double rest = tokens - whole * window;
  return whole * window * window / 2 + rest * rest / 2;
}

// Pairs of the context-parallel rank with most over the mean.
double most_pairs(const RankSizes& sizes, const LanguageForm& form, double window, bool chunked) {
  if (form.context_balanced || sizes.context_ring <= 1) return 1;
  const int ranks = static_cast<int>(sizes.context_ring);
  double most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    most = std::max(most, causal_pairs({sizes.seq, window, chunked}, ranks, rank, false));
  }
  return most * ranks / pairs_before(sizes.seq, window, chunked);
}

// What documents that a sequence packs attend to, each to its own tokens.
struct PackedPairs {
  double pairs = 0;  // of the context-parallel rank with most
  double reach = 0;  // that one document of as many pairs would have, at the same rate
};

// A curve's rate is x / (x + half) of its most, of a document whose tokens attend to x at most
// (attention_rates.hpp), so that pairs take pairs·(1 + half/x): of all as of one with the reach
// Σ pairs / Σ (pairs/x). One kernel has them all, as FlashAttention's with cumulative lengths does.
PackedPairs packed_pairs(const RankSizes& sizes, const LanguageForm& form, double window,
                         bool chunked, bool causal) {
  PackedPairs sum;
  double over_reach = 0;
  for (const std::int64_t tokens : form.documents) {
    RankSizes one = sizes;
    one.seq = real(tokens);
    const double most = causal ? most_pairs(one, form, window, chunked) : 1;
    const double pairs = attended_pairs(one.seq, window, chunked, causal) / sizes.context * most;
    sum.pairs += pairs;
    over_reach += pairs / (window > 0 ? std::min(window, one.seq) : one.seq);
  }
  sum.reach = sum.pairs / over_reach;
  return sum;
}

// Those of the tokens of the slice that is priced, of the context-parallel rank with most.
double pairs_of_slice(const RankSizes& sizes, const LanguageForm& form, double window, bool chunked,
                      bool causal) {
  if (!form.documents.empty()) return packed_pairs(sizes, form, window, chunked, causal).pairs;
  const double most = causal ? most_pairs(sizes, form, window, chunked) : 1;
  if (sizes.slice_begin < 0 || !causal) {
    const double share = sizes.slice_tokens / sizes.seq;
    return attended_pairs(sizes.seq, window, chunked, causal) / sizes.context * share * most;
  }
  const double before = pairs_before(sizes.slice_begin, window, chunked);
  return (pairs_before(sizes.slice_end(), window, chunked) - before) / sizes.context * most;
}

// The longest run of keys that one of its tokens attends to.
double reach_of_slice(const RankSizes& sizes, const LanguageForm& form, double window, bool chunked,
                      bool causal) {
  if (!form.documents.empty()) return packed_pairs(sizes, form, window, chunked, causal).reach;
  const double seen = sizes.slice_begin < 0 ? sizes.seq : sizes.slice_end();
  return window > 0 ? std::min(window, seen) : seen;
}

void add_flash(LayerKernels& passes, const RankSizes& sizes, const LanguageForm& form,
               double window, bool chunked, bool causal) {
  const AttendedKeys keys = attended_keys(sizes, form, window, chunked, causal);
  const double pairs = sizes.batch * keys.pairs;
  const double flops = 2 * pairs * sizes.heads * (sizes.key_width + sizes.value_width);
  add_fused_scores(
      passes, "attention", flops, flash_backward * flops,
      {keys.reach, sizes.tokens * sizes.heads, sizes.key_width, sizes.value_width, false});
}

// A ring adds up the parts of attention's output, and backward of the gradients of queries, keys
// and values: the first part is copied, each other one read, added and written, or half of it, of
// the ranks whose second piece alone attends to that part. They, and those whose pieces attend to
// the part's first one alone, copy these halves before (TransformerEngine, attention/
// dot_product_attention/context_parallel.py, read 2026-11-30). Means of all ranks.
void add_ring_sums(LayerKernels& passes, const RankSizes& sizes, const LanguageForm& form) {
  if (sizes.context_ring <= 1 || form.context_exchange == ContextExchange::all_gather) return;
  constexpr double first = 2;
  constexpr double sum = 3 * 0.75;
  constexpr double copy = 2 * 0.5 * 0.5;
  const double parts = sizes.context_ring - 1;
  const double queries = sizes.queries();
  const double output = sizes.attended();
  const double keys = sizes.read_keys() + sizes.read_values();
  const double forward = first * output + parts * (sum * output + copy * (queries + keys));
  const double backward =
      first * (queries + keys) + parts * ((sum + copy) * (queries + keys) + 2 * copy * output);
  passes.forward.push_back(elementwise("ring_sums", sizes.bytes(sizes.tokens * forward)));
  passes.input_grad.push_back(elementwise("ring_sums", sizes.bytes(sizes.tokens * backward)));
}

void add_grouped_products(LayerKernels& passes, const TransformerConfig& config,
                          const RankSizes& sizes, const BlockTraffic& traffic,
                          const BlockKind& kind) {
  const double queries_and_keys = sizes.queries() + sizes.keys();
  const double values = config.heads_of(kind).values_are_keys ? 0 : sizes.values();
  const double gate = config.attention_gate ? sizes.attended() : 0;
  add_linear(passes, "qkv", sizes.tokens, queries_and_keys + values + gate, sizes.hidden);
  if (config.query_key_norm != QueryKeyNorm::none) {
    const double normed = queries_and_keys + (config.value_norm ? sizes.values() : 0);
    add_elementwise(passes, "query_key_norm", sizes.bytes(sizes.tokens * normed), traffic.norm);
  }
  if (config.positions == Positions::rotary && kind.rotary) {
    add_elementwise(passes, "rotary", sizes.bytes(sizes.tokens * queries_and_keys), traffic.rotary);
  }
}

// The rotary part of the keys is one for all heads, and each head's keys are put together of both
// parts: read once, written once, and back.
void add_latent_products(LayerKernels& passes, const LatentAttention& latent,
                         const RankSizes& sizes, const BlockTraffic& traffic, bool turned) {
  const double own = latent_tokens(sizes);
  const double key_value_rank = real(latent.key_value_rank);
  const double rotary = real(latent.rotary_width);
  if (latent.query_rank > 0) {
    const double rank = real(latent.query_rank);
    add_linear(passes, "query_down", own, rank, sizes.hidden);
    add_elementwise(passes, "query_norm", sizes.bytes(own * rank), traffic.norm);
    add_linear(passes, "query_up", sizes.tokens, sizes.queries(), rank);
  } else {
    add_linear(passes, "query", sizes.tokens, sizes.queries(), sizes.hidden);
  }
  add_linear(passes, "key_value_down", own, key_value_rank + rotary, sizes.hidden);
  add_elementwise(passes, "key_value_norm", sizes.bytes(own * key_value_rank), traffic.norm);
  add_linear(passes, "key_value_up", sizes.tokens,
             sizes.heads * (real(latent.plain_width) + sizes.value_width), key_value_rank);
  if (turned) {
    add_elementwise(passes, "rotary", sizes.bytes(sizes.tokens * (sizes.heads + 1) * rotary),
                    traffic.rotary);
  }
  add_elementwise(passes, "keys", sizes.bytes(sizes.tokens * sizes.keys()), {2, 2});
}

// Each key that the indexer takes is attended to, as within a window of as many.
double reach_of(const TransformerConfig& config, std::int64_t block) {
  if (config.latent && config.latent->index_heads > 0) return real(config.latent->index_keys);
  return config.has_window(block) ? real(config.window) : 0;
}

// Products of the indexer, and its scores of all keys before a token, which a fused kernel makes.
// Its gradient is that of its own loss: it is trained beside the model.
void add_indexer(LayerKernels& passes, const LatentAttention& latent, const RankSizes& sizes,
                 const LanguageForm& form) {
  if (latent.index_heads == 0) return;
  const double heads = real(latent.index_heads);
  const double width = real(latent.index_width);
  add_linear(passes, "index_queries", sizes.tokens, heads * width, real(latent.query_rank));
  add_linear(passes, "index_keys", sizes.tokens, width + heads, sizes.hidden);
  const AttendedKeys keys = attended_keys(sizes, form, 0, false, true);
  const double flops = 2 * (sizes.batch * keys.pairs) * heads * width;
  add_fused_scores(passes, "index_scores", flops, 2 * flops,
                   {keys.reach, sizes.tokens * heads, width, width, false});
}

}  // namespace

AttendedKeys attended_keys(const RankSizes& sizes, const LanguageForm& form, double window,
                           bool chunked, bool causal) {
  return {pairs_of_slice(sizes, form, window, chunked, causal),
          reach_of_slice(sizes, form, window, chunked, causal)};
}

void add_fused_scores(LayerKernels& passes, std::string_view name, double forward, double backward,
                      AttentionSize size) {
  passes.forward.push_back(attention_kernel(name, KernelKind::attention_flash, forward, false));
  passes.forward.back().attention = size;
  size.backward = true;
  passes.input_grad.push_back(attention_kernel(name, KernelKind::attention_flash, backward, false));
  passes.input_grad.back().attention = size;
}

double causal_pairs(const CausalSequence& of, int ranks, int rank, bool balanced) {
  const auto of_piece = [&](int piece, int pieces) {
    const double length = of.tokens / pieces;
    return pairs_before((piece + 1) * length, of.window, of.chunked) -
           pairs_before(piece * length, of.window, of.chunked);
  };
  if (!balanced) return of_piece(rank, ranks);
  return of_piece(rank, 2 * ranks) + of_piece(2 * ranks - 1 - rank, 2 * ranks);
}

void add_attention(LayerKernels& passes, const TransformerConfig& config, const LanguageForm& form,
                   std::int64_t block) {
  if (config.compressed) {
    add_compressed_attention(passes, config, form, block);
    return;
  }
  const RankSizes sizes = rank_sizes(config, form, block);
  const BlockTraffic traffic = block_traffic(form);
  if (config.latent) {
    add_latent_products(passes, *config.latent, sizes, traffic,
                        config.positions == Positions::rotary);
    if (config.kind(block).indexer) add_indexer(passes, *config.latent, sizes, form);
  } else {
    add_grouped_products(passes, config, sizes, traffic, config.kind(block));
  }
  if (form.attention == AttentionKernel::plain) {
    add_plain(passes, sizes, traffic);
  } else {
    add_flash(passes, sizes, form, reach_of(config, block),
              config.chunked && config.has_window(block), config.causal);
    add_ring_sums(passes, sizes, form);
  }
  if (config.attention_gate) {
    add_elementwise(passes, "attention_gate", sizes.bytes(sizes.tokens * sizes.attended()),
                    traffic.gated);
  }
  if (config.inner_norms) {
    add_elementwise(passes, "attention_inner_norm", sizes.bytes(sizes.tokens * sizes.attended()),
                    traffic.norm);
  }
  add_linear(passes, "projection", sizes.tokens, sizes.hidden, sizes.attended());
}

}  // namespace stageline
