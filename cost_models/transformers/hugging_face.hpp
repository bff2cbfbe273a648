// config.json of Hugging Face's transformers as a TransformerConfig.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"

namespace stageline {

/// `text` is the file's content. model_type decides how the other keys are read: gpt2, gpt_neox,
/// llama, mistral, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, deepseek_v2, deepseek_v3, gemma2,
/// bloom. Keys that say nothing about sizes are passed over. Throws TraceError, which begins with
/// `file`, for text that is not JSON, a model_type that is not known (with the known ones), a key
/// that is missing or has the wrong type, and a key that changes the computation and is not known
/// for this model_type, each by name.
TransformerConfig read_hugging_face(const std::string& text, const std::string& file);

/// The model_types.
std::vector<std::string> hugging_face_types();

}  // namespace stageline
