// MiMo-V2-Flash: heads of two kinds, whose values are narrower than keys. For the files of this
// folder only.
#pragma once

#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face_keys.hpp"

namespace stageline {

inline constexpr std::string_view mimo_v2_note =
    "blocks with and without a window have other heads for keys and values, and values narrower "
    "than keys: parameters and FLOPs are exact, and no run of this model was measured";

/// What its keys say beyond those of its row: in the words of transformers' class (layer_types,
/// mlp_layer_types), or of the published file (hybrid_layer_pattern, moe_layer_freq, swa_…). Throws
/// TraceError where the two disagree, and for a form that its class does not have.
void read_mimo_v2(const HuggingFaceKeys& keys, TransformerConfig& config,
                  std::vector<BlockKind>& kinds);

}  // namespace stageline
