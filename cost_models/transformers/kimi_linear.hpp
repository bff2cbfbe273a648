// Kimi Linear: blocks of Kimi Delta Attention, and of latent attention without positions. For the
// files of this folder only.
#pragma once

#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face_keys.hpp"

namespace stageline {

inline constexpr std::string_view kimi_linear_note =
    "blocks of Kimi Delta Attention: parameters and products are exact; what its chunked kernels "
    "move and keep is that of flash-linear-attention's source, and nobody measured it here";

/// The sizes of its linear layers, of linear_attn_config or of transformers' own keys.
LinearMixer read_kimi_delta(const HuggingFaceKeys& keys);

/// What its keys say beyond those of its row: which blocks attend, groups of experts. Throws
/// TraceError where the lists do not name each block once.
void read_kimi_linear(const HuggingFaceKeys& keys, TransformerConfig& config,
                      std::vector<BlockKind>& kinds);

}  // namespace stageline
