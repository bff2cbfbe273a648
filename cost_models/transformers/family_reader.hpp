// Reads a model by the row of its model_type. For the files of this folder only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/family_table.hpp"
#include "cost_models/transformers/hugging_face_keys.hpp"

namespace stageline {

/// Null where no row has that type.
const FamilyRow* find_family_row(std::string_view type);
/// The sizes of a model of that type, not yet completed(). Throws TraceError.
TransformerConfig read_family(const HuggingFaceKeys& keys, const FamilyRow& row);

/// The ranks and widths of latent attention; of an `indexer` its sizes, too. Throws TraceError.
LatentAttention read_latent(const HuggingFaceKeys& keys, bool indexer);

/// Blocks that are listed at most, as many as check() allows.
inline constexpr std::int64_t most_listed = 1 << 12;

/// The kinds of all blocks, to be changed and set again.
std::vector<BlockKind> kinds_of(const TransformerConfig& config);
/// Reads a list of one text a block ("layer_types") into `kinds`; false where it is missing. Of
/// blocks with a window, a linear layer or one half alone it says so.
bool read_layer_types(const HuggingFaceKeys& keys, std::vector<BlockKind>& kinds);

}  // namespace stageline
