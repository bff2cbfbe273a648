// The kinds of a model's blocks, one by one.
#include <algorithm>
#include <cstddef>
#include <iterator>

#include "cost_models/transformers/config.hpp"
#include "sim/base/index.hpp"

namespace stageline {

std::int64_t LinearMixer::convolved() const {
  if (taps == 0) return 0;
  const bool alone = kind == LinearKind::selective || kind == LinearKind::convolution;
  return alone ? values() : 2 * keys() + values();
}

std::int64_t LinearMixer::columns() const {
  const std::int64_t gated = 2 * keys() + 2 * values();
  switch (kind) {
    case LinearKind::delta_net:
      return gated + 2 * heads;  // a decay and a rate of writing
    case LinearKind::mamba:
      return gated + heads;  // a time step
    case LinearKind::lightning:
      return gated;
    case LinearKind::selective:
      return 2 * values();
    case LinearKind::convolution:
      return 3 * values();
    case LinearKind::kimi_delta:
      return 2 * keys() + values() + heads + 2 * gate_rank;  // a rate of writing, two low ranks
  }
  return gated;  // unreachable; g++ wants it
}

BlockKind TransformerConfig::kind(std::int64_t block) const {
  if (block >= layers && prediction_kind) return *prediction_kind;
  if (!pattern.empty()) {
    BlockKind kind = pattern[as_size(std::min(block, layers - 1)) % pattern.size()];
    if (kind.feed == Feed::experts && !experts) kind.feed = Feed::dense;
    if (window == 0) kind.window = false;
    if (block >= layers) kind.compression = Compression::none;  // DeepSeek-V4's module
    return kind;
  }
  BlockKind kind;
  const bool routed = experts && block >= experts->dense_blocks &&
                      (block - experts->dense_blocks + 1) % experts->every == 0;
  if (routed) kind.feed = Feed::experts;
  kind.window = window > 0 && block % window_every == 0;
  return kind;
}

bool TransformerConfig::has_experts(std::int64_t block) const {
  return kind(block).feed == Feed::experts;
}

WideHeads TransformerConfig::heads_of(const BlockKind& kind) const {
  WideHeads its = kind.wide && wide ? *wide : WideHeads{kv_heads, head_width, false, value_width};
  if (its.value_width == 0) its.value_width = its.width;
  return its;
}

std::int64_t TransformerConfig::least_kv_heads() const {
  return wide ? std::min(kv_heads, wide->kv_heads) : kv_heads;
}

bool TransformerConfig::has_window(std::int64_t block) const {
  return kind(block).window && kind(block).attends();
}

namespace {

bool are_blocks(const TransformerConfig& config, const std::vector<BlockKind>& kinds) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (config.kind(static_cast<std::int64_t>(i)) != kinds[i]) return false;
  }
  return true;
}

// Indices of the blocks of which it is true.
template <class Has>
std::vector<std::int64_t> blocks_with(const std::vector<BlockKind>& kinds, Has has) {
  std::vector<std::int64_t> blocks;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (has(kinds[i])) blocks.push_back(static_cast<std::int64_t>(i));
  }
  return blocks;
}

}  // namespace

void set_blocks(TransformerConfig& config, const std::vector<BlockKind>& kinds) {
  const auto count = static_cast<std::int64_t>(kinds.size());
  const auto windows = blocks_with(kinds, [](const BlockKind& kind) { return kind.window; });
  const auto routed =
      blocks_with(kinds, [](const BlockKind& kind) { return kind.feed == Feed::experts; });
  config.pattern.clear();
  if (windows.empty()) config.window = 0;
  config.window_every =
      windows.size() > 1 ? windows[1] - windows[0] : std::max(count, config.layers);
  if (windows.empty()) config.window_every = 1;
  if (routed.empty()) config.experts.reset();
  if (config.experts) {
    config.experts->every = routed.size() > 1 ? routed[1] - routed[0] : 1;
    config.experts->dense_blocks = std::max(routed[0] + 1 - config.experts->every, std::int64_t{0});
  }
  if (are_blocks(config, kinds)) return;
  config.window_every = 1;
  if (config.experts) config.experts->every = 1;
  if (config.experts) config.experts->dense_blocks = 0;
  std::ptrdiff_t period = 1;
  while (as_size(period) < kinds.size() &&
         !std::equal(std::next(kinds.begin(), period), kinds.end(), kinds.begin())) {
    ++period;
  }
  config.pattern.assign(kinds.begin(), std::next(kinds.begin(), period));
}

}  // namespace stageline
