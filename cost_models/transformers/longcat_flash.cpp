#include "cost_models/transformers/longcat_flash.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace stageline {
namespace {

using Keys = HuggingFaceKeys;

// The router chooses among all; those that do nothing take an equal share in the mean.
std::int64_t mean_chosen(const Keys& keys, const Experts& experts, std::int64_t chosen) {
  const std::int64_t working = chosen * experts.count;
  if (working % experts.known() == 0 && working > 0) return working / experts.known();
  keys.refuse("moe_topk",
              fmt::format("a token chooses {} of {} experts, {} of which work: {:.4g} in the mean, "
                          "and a whole number of them is priced",
                          chosen, experts.known(), experts.count,
                          static_cast<double>(working) / static_cast<double>(experts.known())));
}

}  // namespace

void read_longcat_flash(const Keys& keys, TransformerConfig& config,
                        std::vector<BlockKind>& kinds) {
  Experts experts = *config.experts;
  experts.zero = keys.whole_or("zero_expert_num", 256, 0);
  experts.shared_ffn = config.ffn;
  experts.chosen = mean_chosen(keys, experts, experts.chosen);
  if (keys.text_or("zero_expert_type", "identity") != "identity") {
    keys.refuse("zero_expert_type", "zero_expert_type must be \"identity\"");
  }
  if (keys.text_or("attention_method", "MLA") != "MLA") {
    keys.refuse("attention_method", "attention_method must be \"MLA\"");
  }
  config.experts = experts;
  const std::size_t layers = kinds.size();
  if (keys.whole_or("num_hidden_layers", 2 * config.layers) != 2 * config.layers) {
    keys.refuse("num_hidden_layers",
                fmt::format("num_hidden_layers is {}, and must be twice num_layers, {}",
                            keys.whole("num_hidden_layers"), config.layers));
  }
  config.layers *= 2;
  kinds.clear();
  for (std::size_t i = 0; i < layers; ++i) {
    kinds.push_back({.feed = Feed::experts, .shortcut = true});
    kinds.push_back({.feed = Feed::dense});
  }
  // Its module that predicts one more token has a dense MLP (sgl-project/sglang,
  // python/sglang/srt/models/longcat_flash_nextn.py, class LongcatFlashDenseDecoderLayer, read
  // 2026-12-01).
  config.prediction_kind = BlockKind{};
  config.notes.emplace_back(longcat_flash_note);
}

}  // namespace stageline
