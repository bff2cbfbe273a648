// Whether a language model can be trained in a form. For the files of this folder only.
#pragma once

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernels.hpp"

namespace stageline {

bool has_linear_blocks(const TransformerConfig& config);

/// Throws UsageError, which begins with the model's name, where a degree or the length of a
/// sequence does not divide the model, or the form has a kernel that the model cannot be priced
/// with.
void check_form(const TransformerConfig& config, const LanguageForm& form);

}  // namespace stageline
