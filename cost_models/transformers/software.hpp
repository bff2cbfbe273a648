// Generations of training software: what a model's kernels are like where a question does not say.
#pragma once

#include <span>
#include <string_view>

namespace stageline {

/// One generation. Its options are those of LanguageSpelling, each of which the spelling may state
/// itself: "model:llama3-8b@a100,software=megatron-2021,fused=yes".
struct SoftwareGeneration {
  std::string_view name;     // "megatron-bridge-2026.02"
  std::string_view summary;  // one line
  std::string_view options;  // "attention=flash,fused=yes"
  std::string_view experts;  // of models with experts, besides: "graphs=partial"
  std::string_view source;
};
std::span<const SoftwareGeneration> software_generations();

/// Throws UsageError with the nearest name where there is none.
const SoftwareGeneration& find_software(std::string_view name);

}  // namespace stageline
