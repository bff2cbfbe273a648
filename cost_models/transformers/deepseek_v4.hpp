// What DeepSeek-V4's config.json has beyond the keys of its row. For the files of this folder only.
#pragma once

#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face_keys.hpp"

namespace stageline {

/// Compressed attention, streams of the residual, and which block compresses its keys and chooses
/// experts how. As transformers 5.24 reads it, with the keys of older files (compress_ratios,
/// compress_rate_csa, num_hash_layers).
void read_deepseek_v4(const HuggingFaceKeys& keys, TransformerConfig& config,
                      std::vector<BlockKind>& kinds);

}  // namespace stageline
