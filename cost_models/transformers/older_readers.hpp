// Readers of model_types whose sizes are in objects or nested lists. For the files of this folder
// only.
#pragma once

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face_keys.hpp"

namespace stageline {

TransformerConfig read_dbrx(const HuggingFaceKeys& keys);
TransformerConfig read_gpt_neo(const HuggingFaceKeys& keys);
TransformerConfig read_mpt(const HuggingFaceKeys& keys);

}  // namespace stageline
