#include "cost_models/transformers/compressed_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

// A sparse block's keys overlap: each token has one vector for its own key, and one for the next.
std::int64_t series_of(Compression compression) {
  return compression == Compression::sparse ? 2 : 1;
}

// Columns of the products that make compressed keys, and the numbers that weigh the tokens.
std::int64_t compressor_columns(const TransformerConfig& config, const BlockKind& kind) {
  if (kind.compression == Compression::none) return 0;
  return 2 * series_of(kind.compression) * config.head_width;
}

std::int64_t index_columns(const CompressedAttention& attention, const BlockKind& kind) {
  if (kind.compression != Compression::sparse) return 0;
  return 2 * series_of(kind.compression) * attention.index_width;
}

// Weights on every tensor-parallel rank, and those that ranks share.
struct AttentionWeights {
  std::int64_t replicated = 0;
  std::int64_t divided = 0;
};

AttentionWeights weights_of(const TransformerConfig& config, const BlockKind& kind) {
  const CompressedAttention& attention = *config.compressed;
  const std::int64_t h = config.hidden;
  const std::int64_t queries = config.heads * config.head_width;
  AttentionWeights weights;
  weights.replicated = h * (attention.query_rank + config.head_width +
                            compressor_columns(config, kind) + index_columns(attention, kind));
  if (kind.compression == Compression::sparse) {
    weights.replicated += attention.query_rank * attention.index_heads * attention.index_width +
                          h * attention.index_heads;
  }
  weights.divided = attention.query_rank * queries + queries * attention.output_rank +
                    attention.output_groups * attention.output_rank * h;
  return weights;
}

// Norms, and a number for each place in a compressed key and column that weighs it.
std::int64_t norms_and_places(const TransformerConfig& config, const BlockKind& kind) {
  const CompressedAttention& attention = *config.compressed;
  const std::int64_t norms =
      norm_parameters(config, attention.query_rank) + norm_parameters(config, config.head_width);
  if (kind.compression == Compression::none) return norms;
  const bool sparse = kind.compression == Compression::sparse;
  const std::int64_t rate = sparse ? attention.sparse_rate : attention.heavy_rate;
  const std::int64_t of_keys =
      rate * compressor_columns(config, kind) / 2 + norm_parameters(config, config.head_width);
  if (!sparse) return norms + of_keys;
  return norms + of_keys + rate * index_columns(attention, kind) / 2 +
         norm_parameters(config, attention.index_width);
}

// The compressed keys of a block that is sparse are those of a window of so many tokens, of which
// the indexer chooses any; in a block that is heavy there is no limit.
double compressed_window(const CompressedAttention& attention, Compression compression) {
  if (compression == Compression::heavy) return 0;
  return static_cast<double>(attention.index_keys * attention.sparse_rate);
}

// Pairs of a token and what it attends to: tokens of its window, itself among them, and compressed
// keys, each of `rate` tokens.
AttendedKeys attended(const CompressedAttention& attention, const BlockKind& kind,
                      const RankSizes& sizes, const LanguageForm& form, double window) {
  AttendedKeys keys = attended_keys(sizes, form, window, false, true);
  const double rate = compression_rate(attention, kind.compression);
  if (rate == 0) return keys;
  const AttendedKeys more =
      attended_keys(sizes, form, compressed_window(attention, kind.compression), false, true);
  return {keys.pairs + more.pairs / rate, keys.reach + more.reach / rate};
}

double width_of(const TransformerConfig& config) { return real(config.head_width); }

// Its products read the low rank of queries and the hidden state; its scores are of all compressed
// keys before a token, by a fused kernel, whose gradient is that of its own loss.
void add_compressed_indexer(LayerKernels& passes, const CompressedAttention& attention,
                            const RankSizes& sizes, const LanguageForm& form,
                            const BlockKind& kind) {
  const double heads = real(attention.index_heads);
  const double width = real(attention.index_width);
  const double rate = real(attention.sparse_rate);
  const double columns = real(index_columns(attention, kind));
  add_linear(passes, "index_queries", sizes.tokens, heads * width, real(attention.query_rank));
  add_linear(passes, "index_keys", latent_tokens(sizes), columns + heads, sizes.hidden);
  add_elementwise(passes, "index_compress",
                  sizes.bytes(latent_tokens(sizes) * (columns + width / rate)), {1, 2});
  const AttendedKeys all = attended_keys(sizes, form, 0, false, true);
  const double flops = 2 * sizes.batch * all.pairs / rate * heads * width;
  add_fused_scores(passes, "index_scores", flops, 2 * flops,
                   {all.reach / rate, sizes.tokens * heads, width, width, false});
}

void check_number(const TransformerConfig& config, std::string_view what, std::int64_t value,
                  std::int64_t most) {
  if (value >= 1 && value <= most) return;
  throw UsageError(
      fmt::format("{}: {} must be from 1 to {}, and it is {}", config.name, what, most, value));
}

}  // namespace

double compression_rate(const CompressedAttention& attention, Compression compression) {
  switch (compression) {
    case Compression::none:
      return 0;
    case Compression::sparse:
      return real(attention.sparse_rate);
    case Compression::heavy:
      return real(attention.heavy_rate);
  }
  return 0;  // unreachable; g++ wants it
}

std::int64_t compressed_attention_weights(const TransformerConfig& config, const BlockKind& kind) {
  const AttentionWeights weights = weights_of(config, kind);
  return weights.replicated + weights.divided;
}

std::int64_t compressed_attention_parameters(const TransformerConfig& config,
                                             const BlockKind& kind) {
  return compressed_attention_weights(config, kind) + norms_and_places(config, kind) +
         (config.sinks ? config.heads : 0);
}

std::int64_t compressed_attention_replicated(const TransformerConfig& config,
                                             const BlockKind& kind) {
  return weights_of(config, kind).replicated + norms_and_places(config, kind);
}

double compressed_attention_products(const TransformerConfig& config, const BlockKind& kind,
                                     std::int64_t seq) {
  const CompressedAttention& attention = *config.compressed;
  const double rate = compression_rate(attention, kind.compression);
  double keys = real(std::min(config.window, seq));
  double scores = 0;
  if (rate > 0) {
    const double all = real(seq) / rate;
    const bool sparse = kind.compression == Compression::sparse;
    keys += sparse ? std::min(real(attention.index_keys), all) : all;
    if (sparse) scores = real(attention.index_heads) * real(attention.index_width) * all;
  }
  return scores + real(config.heads) * 2 * width_of(config) * keys;
}

double compressed_gathered_width(const TransformerConfig& config, const BlockKind& kind) {
  const CompressedAttention& attention = *config.compressed;
  double width = real(attention.query_rank) + width_of(config);
  if (kind.compression == Compression::none) return width;
  width += width_of(config) / compression_rate(attention, kind.compression);
  if (kind.compression == Compression::heavy) return width;
  return width + real(attention.index_width) / real(attention.sparse_rate) +
         real(attention.index_heads);
}

void add_compressed_attention(LayerKernels& passes, const TransformerConfig& config,
                              const LanguageForm& form, std::int64_t block) {
  const CompressedAttention& attention = *config.compressed;
  const RankSizes sizes = rank_sizes(config, form, block);
  const BlockKind kind = config.kind(block);
  const BlockTraffic traffic = block_traffic(form);
  const double own = latent_tokens(sizes);
  const double rank = real(attention.query_rank);
  const double width = width_of(config);
  add_linear(passes, "query_down", own, rank, sizes.hidden);
  add_elementwise(passes, "query_norm", sizes.bytes(own * rank), traffic.norm);
  add_linear(passes, "query_up", sizes.tokens, sizes.queries(), rank);
  add_linear(passes, "key_value", own, width, sizes.hidden);
  add_elementwise(passes, "query_key_norm",
                  sizes.bytes(sizes.tokens * sizes.queries() + own * width), traffic.norm);
  // Queries, keys, and back in the output, whose values are keys.
  add_elementwise(passes, "rotary",
                  sizes.bytes(sizes.tokens * (2 * sizes.heads + 1) * real(attention.rotary_width)),
                  traffic.rotary);
  if (kind.compression != Compression::none) {
    const double columns = real(compressor_columns(config, kind));
    const double rate = compression_rate(attention, kind.compression);
    add_linear(passes, "compressor", own, columns, sizes.hidden);
    add_elementwise(passes, "compress", sizes.bytes(own * (columns + width / rate)), {1, 2});
  }
  if (kind.compression == Compression::sparse) {
    add_compressed_indexer(passes, attention, sizes, form, kind);
  }
  const AttendedKeys keys = attended(attention, kind, sizes, form, real(config.window));
  const double flops = 2 * sizes.batch * keys.pairs * sizes.heads * 2 * width;
  add_fused_scores(passes, "attention", flops, flash_backward * flops,
                   {keys.reach, sizes.tokens * sizes.heads, width, width, false});
  const double groups = real(attention.output_groups) / sizes.tensor;
  const double ranks = groups * real(attention.output_rank);
  // A product a group, side by side: as many FLOPs as one of a group's rows.
  add_linear(passes, "output_down", sizes.tokens, ranks, sizes.attended() / groups);
  add_linear(passes, "projection", sizes.tokens, sizes.hidden, ranks);
}

CompressedKept kept_by_compressed_attention(const TransformerConfig& config, const RankSizes& sizes,
                                            const BlockKind& kind) {
  const CompressedAttention& attention = *config.compressed;
  const double own = latent_tokens(sizes);
  const double rank = own * real(attention.query_rank);
  const double queries = sizes.tokens * sizes.queries();
  const double width = width_of(config);
  const double groups =
      sizes.tokens * real(attention.output_groups) / sizes.tensor * real(attention.output_rank);
  CompressedKept held;
  // Inputs and outputs of norms; attention's output, which its backward reads, turned back.
  held.kept = rank + 2 * queries + own * width + sizes.tokens * width;
  held.for_products = rank + sizes.tokens * sizes.attended() + groups;
  held.output_gradients = rank + queries + own * width + groups + sizes.whole_elements();
  if (kind.compression == Compression::none) return held;
  const double rate = compression_rate(attention, kind.compression);
  double made = own * real(compressor_columns(config, kind));
  double keys = width;
  if (kind.compression == Compression::sparse) {
    const double heads = real(attention.index_heads);
    made += own * (real(index_columns(attention, kind)) + heads) +
            sizes.tokens * heads * real(attention.index_width);
    keys += real(attention.index_width);
  }
  // What is summed, and sums before and behind their norm.
  held.kept += made + 2 * sizes.tokens * keys / rate;
  held.output_gradients += made;
  return held;
}

void check_compressed_form(const TransformerConfig& config, const LanguageForm& form) {
  if (!config.compressed) return;
  const std::int64_t groups = config.compressed->output_groups;
  if (groups % form.sharding.tensor != 0) {
    throw UsageError(fmt::format(
        "{}: the groups of heads of attention's output must be a multiple of tp, and {} is not one "
        "of {}",
        config.name, groups, form.sharding.tensor));
  }
  if (form.sharding.context > 1) {
    throw UsageError(fmt::format(
        "{}: among cp {} ranks a compressed key has tokens of two of them, which is not priced; "
        "leave cp at 1",
        config.name, form.sharding.context));
  }
  if (form.slice.count > 1) {
    throw UsageError(fmt::format(
        "{}: what {} slices of a sequence keep of compressed keys is not priced; leave --slices "
        "at 1",
        config.name, form.slice.count));
  }
  if (form.attention == AttentionKernel::plain) {
    throw UsageError(fmt::format(
        "{}: attention=plain computes the scores of all keys, and its tokens attend to a window "
        "and to compressed ones; take attention=flash",
        config.name));
  }
}

void check_compressed(const TransformerConfig& config, const CompressedAttention& attention) {
  constexpr std::int64_t most_width = 1 << 16;
  constexpr std::int64_t most_tokens = 1 << 24;
  struct Number {
    std::string_view what;
    std::int64_t value;
    std::int64_t most;
  };
  const std::array numbers{
      Number{"the rank of queries", attention.query_rank, most_width},
      Number{"a head's rotary width", attention.rotary_width, config.head_width},
      Number{"the groups of heads of attention's output", attention.output_groups, config.heads},
      Number{"a group's rank", attention.output_rank, most_width},
      Number{"the tokens of a sparse block's key", attention.sparse_rate, most_tokens},
      Number{"the tokens of a heavy block's key", attention.heavy_rate, most_tokens},
      Number{"the indexer's heads", attention.index_heads, most_width},
      Number{"a width of the indexer's heads", attention.index_width, most_width},
      Number{"the keys that the indexer takes", attention.index_keys, most_tokens},
      Number{"the window of compressed attention", config.window, most_tokens}};
  for (const Number& number : numbers) check_number(config, number.what, number.value, number.most);
  if (config.heads % attention.output_groups == 0) return;
  throw UsageError(fmt::format(
      "{}: heads must be a multiple of the groups of attention's output, and {} is not one of {}",
      config.name, config.heads, attention.output_groups));
}

}  // namespace stageline
