// Published models of 2025, and what the table of families is made with. For the files of this
// folder only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"

namespace stageline {

struct FamilySize {
  std::int64_t layers, hidden, heads, kv_heads, ffn;
};

/// Where a repository of huggingface.co has its config.json.
std::string config_json(std::string_view repository);
/// Sizes alone.
TransformerConfig sized(std::string_view name, std::string_view family, const FamilySize& size,
                        std::string source);
/// RMS norms, rotary positions, three matrices in an MLP, no bias.
TransformerConfig llama_like(std::string_view name, std::string_view family, const FamilySize& size,
                             std::int64_t vocab, std::int64_t seq, std::string_view repository);

void add_recent_families(std::vector<FamilyMember>& table);

}  // namespace stageline
