// How a language model was priced, read off the provenance of its trace.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/kernel_rates.hpp"
#include "sim/model.hpp"

namespace stageline {

/// What Provenance::method of language_model() begins with, before the number format.
inline constexpr std::string_view language_method = "estimated: kernels of a transformer";
/// What the note of a software generation begins with, before its name and a colon.
inline constexpr std::string_view software_note = "software ";

struct PricedLanguage {
  std::string format;    // of products: "bf16", "fp8-current"
  std::string software;  // generation, "megatron-core-2024"; empty: none was stated
  std::vector<CalibratedRuns> calibrated{};  // that its rates rest on, where they are few
};

/// The note of a model whose rates rest on few runs: "calibrated on 3 runs (megatron-core-2024,
/// dense, products 16): 80 % of others lie within 0.964 to 1.057 of the prediction".
std::string calibrated_note(const CalibratedRuns& runs);

/// Empty for a trace that language_model() has not made: a measured one, or another cost model's.
std::optional<PricedLanguage> priced_language(const Model& model);

}  // namespace stageline
