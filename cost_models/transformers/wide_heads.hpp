// Gemma 4: heads of two widths, and experts beside a dense MLP. For the files of this folder only.
#pragma once

#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face_keys.hpp"

namespace stageline {

/// What its keys say beyond those of its row. Throws TraceError where blocks have a table of inputs
/// each, or share keys and values.
void read_gemma4(const HuggingFaceKeys& keys, TransformerConfig& config,
                 std::vector<BlockKind>& kinds);

}  // namespace stageline
