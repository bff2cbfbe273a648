// How a language model was priced, read off the provenance of its trace.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/model.hpp"

namespace stageline {

/// What Provenance::method of language_model() begins with, before the number format.
inline constexpr std::string_view language_method = "estimated: kernels of a transformer";
/// What the note of a software generation begins with, before its name and a colon.
inline constexpr std::string_view software_note = "software ";

struct PricedLanguage {
  std::string format;    // of products: "bf16", "fp8-current"
  std::string software;  // generation, "megatron-core-2024"; empty: none was stated
};

/// Empty for a trace that language_model() has not made: a measured one, or another cost model's.
std::optional<PricedLanguage> priced_language(const Model& model);

}  // namespace stageline
