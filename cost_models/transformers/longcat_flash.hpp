// LongCat-Flash: two of attention and MLP a layer beside its experts, some of which do nothing. For
// the files of this folder only.
//
//   ─► attention ─► norm ─┬─► MLP ─► add ─► attention ─► norm ─► MLP ─► add ─► add
//                         └─► experts ─────────────────────────────────────────┘
//
// A layer is two blocks here, of which the first has the experts, and its MLP as a shared expert:
// both read the same norm. What the experts make is added behind the second one.
#pragma once

#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face_keys.hpp"

namespace stageline {

inline constexpr std::string_view longcat_flash_note =
    "each layer is two blocks, the first with the experts beside its MLP: parameters and products "
    "are exact for the mean of the experts that a token chooses; that their exchange runs under "
    "the MLP and attention beside it (the shortcut) is not priced, and no run of this model was "
    "measured";

/// Its experts, and the two blocks of each layer. `kinds` has as many items as layers, and comes
/// back with twice as many. Throws TraceError where the mean of the experts that work on a token is
/// no whole number.
void read_longcat_flash(const HuggingFaceKeys& keys, TransformerConfig& config,
                        std::vector<BlockKind>& kinds);

}  // namespace stageline
