// Readers of model_types that are code. For the files of this folder only.
#pragma once

#include <span>
#include <string_view>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face_keys.hpp"

namespace stageline {

struct Reader {
  std::string_view type;
  std::string_view causal_class;
  TransformerConfig (*read)(const HuggingFaceKeys& keys);
};
std::span<const Reader> coded_readers();

}  // namespace stageline
