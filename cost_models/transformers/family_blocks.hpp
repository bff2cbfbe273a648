// The kinds of a model's blocks by the row of its model_type. For the files of this folder only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/family_table.hpp"
#include "cost_models/transformers/hugging_face_keys.hpp"

namespace stageline {

/// "a|b" as a list.
std::vector<std::string> spellings_of(std::string_view keys);
/// The number under the first key that is there; all that are must agree. Throws TraceError.
std::int64_t number_of(const HuggingFaceKeys& keys, const NumberKeys& of, std::int64_t least = 1);
bool flag_of(const HuggingFaceKeys& keys, const FlagKey& of);

/// What mixes the tokens of each block, with the length of the window.
void read_mixers(const HuggingFaceKeys& keys, const FamilyRow& row, TransformerConfig& config,
                 std::vector<BlockKind>& kinds);
/// Which blocks have experts.
void read_feeds(const HuggingFaceKeys& keys, const ExpertKeys& of, std::vector<BlockKind>& kinds);
/// Blocks of one half each, "M-M*E" (Nemotron-H), with their number. False where no key lists them.
bool read_halves(const HuggingFaceKeys& keys, TransformerConfig& config,
                 std::vector<BlockKind>& kinds);

}  // namespace stageline
