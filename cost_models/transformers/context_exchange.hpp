// How context-parallel ranks exchange what attention reads: names, rules and notes. For the files
// of this folder only.
#pragma once

#include <string>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernels.hpp"

namespace stageline {

/// "p2p", "a2a+p2p:4": as set_context_exchange() takes it.
std::string exchange_text(const LanguageForm& form);

/// Throws UsageError, which names the words that there are.
void set_context_exchange(LanguageForm& form, const std::string& text);

/// Throws UsageError, which begins with the model's name, where ranks cannot have whole heads,
/// parts of a hierarchy do not divide the context degree, or the kernel attends to all at once.
void check_context_exchange(const TransformerConfig& config, const LanguageForm& form);

/// What a reader must know of it; empty: nothing.
std::string context_exchange_note(const TransformerConfig& config, const LanguageForm& form);

}  // namespace stageline
