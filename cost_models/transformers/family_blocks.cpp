// Which half of which block is what: lists, patterns and distances of a config.json.
#include "cost_models/transformers/family_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "cost_models/transformers/family_reader.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

using Keys = HuggingFaceKeys;

struct LayerType {
  std::string_view word;
  BlockKind kind;
  bool one_half = false;
};
constexpr std::array known_layer_types{
    LayerType{"full_attention", {}},
    LayerType{"attention", {}},
    LayerType{"indexed_attention", {}},
    LayerType{"sliding_attention", {.window = true}},
    LayerType{"chunked_attention", {.window = true}},
    LayerType{"linear_attention", {.mixer = Mixer::linear}},
    LayerType{"mamba", {.mixer = Mixer::linear}},
    LayerType{"conv", {.mixer = Mixer::linear}},
    LayerType{"hybrid", {.mixer = Mixer::both}},
    LayerType{"moe", {.mixer = Mixer::none, .feed = Feed::experts}, true},
    LayerType{"mlp", {.mixer = Mixer::none, .feed = Feed::dense}, true},
};

template <class Items>
void check_length(const Keys& keys, const std::string& key, const Items& items,
                  const std::vector<BlockKind>& kinds) {
  if (items.size() == kinds.size()) return;
  keys.refuse(key, fmt::format("{} has {} blocks, and num_hidden_layers is {}", key, items.size(),
                               kinds.size()));
}

void check_half(const Keys& keys, const TransformerConfig& config,
                const std::vector<BlockKind>& kinds) {
  if (config.linear) return;
  for (const BlockKind& kind : kinds) {
    if (!kind.scans()) continue;
    keys.refuse("layer_types",
                "layer_types may have full_attention and sliding_attention, not linear_attention");
  }
}

// Where neither a list nor an index says which blocks are filled.
void fill_blocks(const FamilyRow& row, std::int64_t every, std::vector<BlockKind>& kinds) {
  if (row.filling == Filling::none) return;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::int64_t place = static_cast<std::int64_t>(i) + (row.but_first ? 0 : 1);
    if (every > 0 && place % every == 0) continue;
    if (row.filling == Filling::window) kinds[i].window = true;
    if (row.filling == Filling::linear) kinds[i].mixer = Mixer::linear;
    if (row.filling == Filling::both) kinds[i].mixer = Mixer::both;
    if (row.filling == Filling::linear_alone) {
      kinds[i] = {.mixer = Mixer::linear, .feed = Feed::none};
    }
  }
}

// MiniMax: 0 is a linear layer, 1 is attention. False where the key is missing.
bool read_attention_list(const Keys& keys, std::vector<BlockKind>& kinds) {
  const std::vector<std::int64_t> types = keys.wholes("attn_type_list");
  if (types.empty()) return false;
  check_length(keys, "attn_type_list", types, kinds);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == 0) kinds[i].mixer = Mixer::linear;
  }
  return true;
}

// Bamba, LFM2: the blocks with attention among the others.
bool read_attention_indices(const Keys& keys, const std::string& key,
                            std::vector<BlockKind>& kinds) {
  if (!keys.has(key)) return false;
  const std::vector<std::int64_t> attention = keys.wholes(key);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const bool attends = std::find(attention.begin(), attention.end(),
                                   static_cast<std::int64_t>(i)) != attention.end();
    kinds[i].mixer = attends ? Mixer::attention : Mixer::linear;
  }
  return true;
}

// Jamba: a block with attention every so often, from an offset on.
void read_attention_period(const Keys& keys, std::vector<BlockKind>& kinds) {
  const std::int64_t period = keys.whole_or("attn_layer_period", 8);
  const std::int64_t offset = keys.whole_or("attn_layer_offset", 4, 0);
  if (offset >= period) {
    keys.refuse("attn_layer_offset",
                fmt::format("attn_layer_offset must be below attn_layer_period, {}, not {}", period,
                            offset));
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const bool attends = static_cast<std::int64_t>(i) % period == offset;
    kinds[i].mixer = attends ? Mixer::attention : Mixer::linear;
  }
}

// Where the row says how, without "layer_types".
bool read_other_list(const Keys& keys, const FamilyRow& row, std::vector<BlockKind>& kinds) {
  if (row.filling != Filling::linear) return false;
  switch (row.linear) {
    case LinearKind::lightning:
      return read_attention_list(keys, kinds);
    case LinearKind::mamba:
      return read_attention_indices(keys, "attn_layer_indices", kinds);
    case LinearKind::convolution:
      return read_attention_indices(keys, "full_attn_idxs", kinds);
    case LinearKind::selective:
      read_attention_period(keys, kinds);
      return true;
    case LinearKind::delta_net:
    case LinearKind::kimi_delta:
      return false;
  }
  return false;  // unreachable; g++ wants it
}

// A text for an exponent, "LLLG", or a number (EXAONE 4).
std::int64_t period_of(const Keys& keys, const NumberKeys& of) {
  for (const std::string& key : spellings_of(of.keys)) {
    if (!keys.is_text(key)) continue;
    const std::string pattern = keys.text_or(key, "");
    const std::size_t global = pattern.find('G');
    if (global == std::string::npos) return 0;
    if (global + 1 != pattern.size()) {
      keys.refuse(key, fmt::format("{} must end in its only G, not {}", key, pattern));
    }
    return static_cast<std::int64_t>(pattern.size());
  }
  return number_of(keys, of, 0);
}

void read_rotary(const Keys& keys, const FamilyRow& row, std::vector<BlockKind>& kinds) {
  if (row.rotary_in_windows_alone) {
    const bool windows =
        std::any_of(kinds.begin(), kinds.end(), [](const BlockKind& kind) { return kind.window; });
    for (BlockKind& kind : kinds) kind.rotary = kind.window || !windows;
  }
  const std::int64_t every = number_of(keys, row.rotary_but_every, 0);
  if (every == 0) return;
  const std::vector<std::int64_t> list = keys.wholes("no_rope_layers");
  if (!list.empty()) check_length(keys, "no_rope_layers", list, kinds);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].rotary = list.empty() ? (static_cast<std::int64_t>(i) + 1) % every != 0 : list[i] != 0;
  }
}

// mlp_layer_types of DeepSeek-V3.2: "dense", "sparse"; moe_layers of Llama 4: indices.
bool read_feed_lists(const Keys& keys, std::vector<BlockKind>& kinds) {
  const std::vector<std::string> types = keys.texts("mlp_layer_types");
  if (!types.empty()) {
    check_length(keys, "mlp_layer_types", types, kinds);
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] != "dense" && types[i] != "sparse") {
        keys.refuse("mlp_layer_types",
                    fmt::format("mlp_layer_types may have dense and sparse, not {}", types[i]));
      }
      kinds[i].feed = types[i] == "sparse" ? Feed::experts : Feed::dense;
    }
    return true;
  }
  const std::vector<std::int64_t> indices = keys.wholes("moe_layers");
  for (const std::int64_t block : indices) {
    if (block < 0 || block >= static_cast<std::int64_t>(kinds.size())) {
      keys.refuse("moe_layers", fmt::format("moe_layers has block {}, and there are {} blocks",
                                            block, kinds.size()));
    }
    kinds[as_size(block)].feed = Feed::experts;
  }
  return !indices.empty();
}

}  // namespace

std::vector<std::string> spellings_of(std::string_view keys) {
  std::vector<std::string> list;
  while (!keys.empty()) {
    const std::size_t end = std::min(keys.find('|'), keys.size());
    list.emplace_back(keys.substr(0, end));
    keys.remove_prefix(std::min(end + 1, keys.size()));
  }
  return list;
}

std::int64_t number_of(const Keys& keys, const NumberKeys& of, std::int64_t least) {
  std::string found;
  const std::vector<std::string> spellings = spellings_of(of.keys);
  for (const std::string& key : spellings) {
    if (!keys.has(key)) continue;
    if (found.empty()) {
      found = key;
    } else if (keys.whole_or(key, 0, least) != keys.whole_or(found, 0, least)) {
      keys.refuse(key,
                  fmt::format("{} is {}, and {}, another word for it, is {}; remove one", key,
                              keys.whole_or(key, 0, least), found, keys.whole_or(found, 0, least)));
    }
  }
  if (!found.empty()) return keys.whole_or(found, 0, least);
  return of.fallback == needed && !spellings.empty() ? keys.whole(spellings.front()) : of.fallback;
}

bool flag_of(const Keys& keys, const FlagKey& of) {
  for (const std::string& key : spellings_of(of.key)) {
    if (keys.has(key)) return keys.flag_or(key, of.fallback);
  }
  return of.fallback;
}

std::vector<BlockKind> kinds_of(const TransformerConfig& config) {
  std::vector<BlockKind> kinds;
  const std::int64_t count = std::min(config.layers, most_listed);  // check() refuses more
  for (std::int64_t i = 0; i < count; ++i) kinds.push_back(config.kind(i));
  return kinds;
}

bool read_layer_types(const Keys& keys, std::vector<BlockKind>& kinds) {
  const std::vector<std::string> types = keys.texts("layer_types");
  if (types.empty()) return false;
  check_length(keys, "layer_types", types, kinds);
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto* const known =
        std::find_if(known_layer_types.begin(), known_layer_types.end(),
                     [&](const LayerType& one) { return one.word == types[i] && !one.one_half; });
    if (known == known_layer_types.end()) {
      keys.refuse("layer_types", fmt::format("layer_types may have full_attention and "
                                             "sliding_attention, not {}",
                                             types[i]));
    }
    kinds[i].mixer = known->kind.mixer;
    kinds[i].window = known->kind.window;
  }
  return true;
}

// Llama 4's pieces are those of the blocks with rotary positions.
void read_mixers(const Keys& keys, const FamilyRow& row, TransformerConfig& config,
                 std::vector<BlockKind>& kinds) {
  const std::int64_t every = period_of(keys, row.but_every);
  const bool typed = read_layer_types(keys, kinds);  // the list holds, whatever the others say
  std::vector<BlockKind> others = kinds;
  const bool listed = read_other_list(keys, row, typed ? others : kinds) || typed;
  if (!listed && row.type == "lfm2") return;  // all blocks have attention
  const bool delta = row.linear == LinearKind::delta_net || row.linear == LinearKind::kimi_delta;
  if (!listed && row.filling == Filling::linear && !delta) {
    keys.refuse("", "the key \"layer_types\" is missing, which says what each block is");
  }
  if (!listed) fill_blocks(row, every, kinds);
  read_rotary(keys, row, kinds);
  if (row.chunked && !listed) {
    for (BlockKind& kind : kinds) kind.window = kind.rotary;
  }
  check_half(keys, config, kinds);
  const bool windows =
      std::any_of(kinds.begin(), kinds.end(), [](const BlockKind& kind) { return kind.window; });
  config.window = windows ? number_of(keys, row.window, 0) : 0;
  if (typed && !windows) {
    for (const std::string& key : spellings_of(row.window.keys)) keys.has(key);  // of no block
  }
  if (windows && row.window.keys.empty())
    config.window = number_of(keys, {"sliding_window", needed});
  if (config.window > 0) return;
  for (BlockKind& kind : kinds) kind.window = false;
}

void read_feeds(const Keys& keys, const ExpertKeys& of, std::vector<BlockKind>& kinds) {
  const bool listed = read_feed_lists(keys, kinds);  // the list holds, whatever the others say
  const std::int64_t first = number_of(keys, of.first, 0);
  const std::int64_t every = std::max<std::int64_t>(number_of(keys, of.every, 0), 1);
  const std::int64_t at = of.at.keys.empty() ? every - 1 : number_of(keys, of.at, 0);
  const std::int64_t last = number_of(keys, of.last, -1);
  const std::vector<std::int64_t> dense = keys.wholes("mlp_only_layers");
  if (listed) return;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto block = static_cast<std::int64_t>(i);
    const bool routed = block >= first && block % every == at &&
                        (of.last.keys.empty() || last < 0 || block <= last) &&
                        std::find(dense.begin(), dense.end(), block) == dense.end();
    if (kinds[i].feed == Feed::dense && routed) kinds[i].feed = Feed::experts;
  }
}

// "M-M*E": one half a block (Nemotron-H).
bool read_halves(const Keys& keys, TransformerConfig& config, std::vector<BlockKind>& kinds) {
  std::vector<std::string> types = keys.texts("layers_block_type");
  const std::string pattern = keys.text_or("hybrid_override_pattern", "");
  if (types.empty()) types = keys.texts("layer_types");
  if (pattern.empty() && types.empty()) return false;
  kinds.clear();
  for (const char letter : pattern) {
    switch (letter) {
      case 'M':
        kinds.push_back({.mixer = Mixer::linear, .feed = Feed::none});
        break;
      case '*':
        kinds.push_back({.mixer = Mixer::attention, .feed = Feed::none});
        break;
      case '-':
        kinds.push_back({.mixer = Mixer::none, .feed = Feed::dense});
        break;
      case 'E':
        kinds.push_back({.mixer = Mixer::none, .feed = Feed::experts});
        break;
      default:
        keys.refuse("hybrid_override_pattern",
                    fmt::format("hybrid_override_pattern may have M, *, - and E, not {}", letter));
    }
  }
  for (const std::string& type : pattern.empty() ? types : std::vector<std::string>{}) {
    const auto* const known = std::find_if(known_layer_types.begin(), known_layer_types.end(),
                                           [&](const LayerType& one) { return one.word == type; });
    if (known == known_layer_types.end()) {
      keys.refuse("layers_block_type", fmt::format("layers_block_type has {}, which is none of "
                                                   "mamba, attention, mlp, moe",
                                                   type));
    }
    kinds.push_back(known->kind);
    if (!known->one_half) kinds.back().feed = Feed::none;
  }
  const auto count = static_cast<std::int64_t>(kinds.size());
  if (keys.whole_or("num_hidden_layers", count) != count) {
    keys.refuse("num_hidden_layers", fmt::format("num_hidden_layers is {}, and the pattern has {} "
                                                 "blocks",
                                                 keys.whole("num_hidden_layers"), count));
  }
  config.layers = count;
  return true;
}

}  // namespace stageline
