// The length of the sequences that a model is usually trained on. For the files of this folder
// only.
#pragma once

#include <cstdint>

#include "cost_models/transformers/hugging_face_keys.hpp"

namespace stageline {

/// Training usually starts with shorter sequences than a model takes in the end: the length before
/// rotary scaling, and at most 8192.
std::int64_t usual_sequence(const HuggingFaceKeys& keys, std::int64_t longest);

}  // namespace stageline
