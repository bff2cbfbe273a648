#include "cost_models/transformers/deepseek_v4.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

using Keys = HuggingFaceKeys;

struct NamedCompression {
  std::string_view word;
  std::int64_t ratio;  // in compress_ratios of older files
  Compression compression;
};
constexpr std::array named_compressions{
    NamedCompression{"sliding_attention", 0, Compression::none},
    NamedCompression{"compressed_sparse_attention", 4, Compression::sparse},
    NamedCompression{"heavily_compressed_attention", 128, Compression::heavy}};

// A list of as many items as blocks. Ratios may go on: with those of modules that predict.
void check_items(const Keys& keys, const std::string& key, std::size_t items, std::size_t blocks,
                 bool may_go_on) {
  if (items == blocks || (may_go_on && items > blocks)) return;
  keys.refuse(key,
              fmt::format("{} has {} blocks, and num_hidden_layers is {}", key, items, blocks));
}

void read_layer_types(const Keys& keys, const std::vector<std::string>& types,
                      std::vector<BlockKind>& kinds) {
  check_items(keys, "layer_types", types.size(), kinds.size(), false);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto* const named =
        std::find_if(named_compressions.begin(), named_compressions.end(),
                     [&](const NamedCompression& one) { return one.word == types[i]; });
    if (named == named_compressions.end()) {
      keys.refuse("layer_types", fmt::format("layer_types may have {}, {} and {}, not {}",
                                             named_compressions[0].word, named_compressions[1].word,
                                             named_compressions[2].word, types[i]));
    }
    kinds[i].compression = named->compression;
  }
}

void read_ratios(const Keys& keys, const std::vector<std::int64_t>& ratios,
                 std::vector<BlockKind>& kinds) {
  check_items(keys, "compress_ratios", ratios.size(), kinds.size(), true);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto* const named =
        std::find_if(named_compressions.begin(), named_compressions.end(),
                     [&](const NamedCompression& one) { return one.ratio == ratios[i]; });
    if (named == named_compressions.end()) {
      keys.refuse(
          "compress_ratios",
          fmt::format("compress_ratios may have {}, {} and {}, not {}", named_compressions[0].ratio,
                      named_compressions[1].ratio, named_compressions[2].ratio, ratios[i]));
    }
    kinds[i].compression = named->compression;
  }
}

// Where nothing is listed, two heavy blocks, then heavy and sparse ones in turn.
void compress_as_usual(std::vector<BlockKind>& kinds) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const bool sparse = i >= 2 && i % 2 == 1;
    kinds[i].compression = sparse ? Compression::sparse : Compression::heavy;
  }
}

void read_compressions(const Keys& keys, std::vector<BlockKind>& kinds) {
  const std::vector<std::int64_t> ratios = keys.wholes("compress_ratios");
  const std::vector<std::string> types = keys.texts("layer_types");
  if (!types.empty()) {
    read_layer_types(keys, types, kinds);
  } else if (!ratios.empty()) {
    read_ratios(keys, ratios, kinds);
  } else {
    compress_as_usual(kinds);
  }
}

std::int64_t rate_of(const Keys& keys, const std::string& type, const std::string& older,
                     std::int64_t usual) {
  const std::int64_t inner =
      keys.holds("compress_rates") ? keys.inner_whole("compress_rates", type) : 0;
  return keys.whole_or(older, inner > 0 ? inner : usual);
}

// The first blocks' experts follow from the token, by a table that is not trained.
std::int64_t hashed_blocks(const Keys& keys, std::size_t blocks) {
  const std::int64_t usual = std::min<std::int64_t>(keys.whole_or("num_hash_layers", 3, 0),
                                                    static_cast<std::int64_t>(blocks));
  const std::vector<std::string> types = keys.texts("mlp_layer_types");
  if (types.empty()) return usual;
  check_items(keys, "mlp_layer_types", types.size(), blocks, false);
  const auto first = std::find(types.begin(), types.end(), "moe");
  const bool apart =
      std::all_of(types.begin(), first,
                  [](const std::string& type) { return type == "hash_moe"; }) &&
      std::all_of(first, types.end(), [](const std::string& type) { return type == "moe"; });
  if (!apart) {
    keys.refuse("mlp_layer_types",
                "mlp_layer_types may have hash_moe, and moe behind all of these");
  }
  return first - types.begin();
}

}  // namespace

void read_deepseek_v4(const Keys& keys, TransformerConfig& config, std::vector<BlockKind>& kinds) {
  CompressedAttention attention;
  attention.query_rank = keys.whole_or("q_lora_rank", 1024);
  attention.output_groups = keys.whole_or("o_groups", 8);
  attention.output_rank = keys.whole_or("o_lora_rank", 1024);
  const double turned = keys.real_or("partial_rotary_factor", 0.125);
  attention.rotary_width = keys.whole_or(
      "qk_rope_head_dim",
      std::max<std::int64_t>(
          static_cast<std::int64_t>(static_cast<double>(config.head_width) * turned), 1));
  attention.sparse_rate = rate_of(keys, "compressed_sparse_attention", "compress_rate_csa", 4);
  attention.heavy_rate = rate_of(keys, "heavily_compressed_attention", "compress_rate_hca", 128);
  attention.index_heads = keys.whole_or("index_n_heads", 64);
  attention.index_width = keys.whole_or("index_head_dim", 128);
  attention.index_keys = keys.whole_or("index_topk", 512);
  config.compressed = attention;
  config.kv_heads = 1;  // whatever the file says: its class has one
  config.window = keys.whole_or("sliding_window", 128);
  config.streams = keys.whole_or("hc_mult", 4);
  read_compressions(keys, kinds);
  for (BlockKind& kind : kinds) {
    kind.window = true;
    kind.feed = Feed::experts;
  }
  if (keys.whole_or("n_shared_experts", 1, 0) != 1) {
    keys.refuse("n_shared_experts",
                "n_shared_experts must be 1: the class has one MLP that all "
                "tokens pass, as wide as an expert");
  }
  if (config.experts) config.experts->hashed_blocks = hashed_blocks(keys, kinds.size());
}

}  // namespace stageline
