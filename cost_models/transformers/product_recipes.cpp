// The table of recipes, and what was measured of them.
#include "cost_models/transformers/product_recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "cost_models/transformers/kernel_rates.hpp"

namespace stageline {
namespace {

constexpr std::string_view guide =
    "Megatron-LM, docs/user-guide/features/low_precision_training.md, and Transformer Engine, "
    "docs/features/low_precision_training/performance_considerations, both read 2026-11-29";

// Scales: one of 4 bytes a tensor (current, delayed) or 128 elements (block), one of 1 byte for 32
// elements (MXFP8) or 16 (NVFP4). Transformer Engine keeps an input as W reads it, columnwise, and
// Megatron's output layer and router are no layers of Transformer Engine.
constexpr std::array known_recipes{
    ProductRecipe{"fp8", false, false, true, 2, "no recipe in particular; all is kept in 16 bits"},
    ProductRecipe{"fp8-current", false, false, false, 1, guide},
    ProductRecipe{"fp8-delayed", false, false, false, 1, guide},
    ProductRecipe{"fp8-block", false, false, false, 1 + 4.0 / 128, guide},
    ProductRecipe{"mxfp8", false, true, false, 1 + 1.0 / 32, guide},
    ProductRecipe{"nvfp4", true, true, false, 0.5 + 1.0 / 16, guide},
};

// The twelve products of a block of hidden size 4,096 with an MLP of 16,384 on 15,872 rows, 19.2
// TFLOP, in ms with casts ("autocast"): NVIDIA's GEMM Profiling Tutorial of Transformer Engine
// (docs/examples/gemm_profiling), read 2026-11-29. Ratios alone are taken from it, so that the
// curve of sizes, which all recipes share, is none of them.
struct Measured {
  std::string_view recipe;
  double hopper = 0;     // H200 NVL; 0: not measured
  double blackwell = 0;  // B300
};
constexpr std::string_view times_source =
    "a block's twelve products with casts on H200 NVL and B300 (Transformer Engine's GEMM Profiling "
    "Tutorial, read 2026-11-29)";
constexpr std::array recipe_times{
    Measured{"fp8-current", 20.3, 9.147},
    Measured{"fp8-delayed", 19.0, 7.802},
    Measured{"fp8-block", 22.9, 0},
    Measured{"mxfp8", 0, 8.984},
};

const Measured& measured_of(std::string_view recipe) {
  return *std::find_if(recipe_times.begin(), recipe_times.end(),
                       [&](const Measured& one) { return one.recipe == recipe; });
}

std::string not_measured(const ProductRecipe& recipe, std::string_view kind,
                         std::string_view taken_for) {
  return fmt::format("products in {} on {}: nobody measured them, {}", recipe.name, kind,
                     taken_for);
}

}  // namespace

std::span<const ProductRecipe> product_recipes() { return known_recipes; }

const ProductRecipe* find_product_recipe(std::string_view dtype) {
  const auto* const found =
      std::find_if(known_recipes.begin(), known_recipes.end(),
                   [&](const ProductRecipe& one) { return one.name == dtype; });
  return found == known_recipes.end() ? nullptr : found;
}

ProductSpeed product_speed(const ProductRecipe& recipe, std::string_view kind) {
  if (recipe.name == "fp8") return {};
  const Architecture architecture = architecture_of(kind);
  if (architecture == Architecture::other) {
    return {1, std::string(times_source),
            not_measured(recipe, kind,
                         recipe.four_bits ? "they are as much faster than in fp8 as "
                                            "gemm_4bit says"
                                          : "they take as long as gemm_8bit says")};
  }
  const bool is_hopper = architecture == Architecture::hopper;
  const std::string_view family = family_of_kind(kind);
  // An H100 has the arithmetic of an H200.
  const bool known = is_hopper ? family == "h100" || family == "h200"
                               : family == "b300" || (recipe.four_bits && family == "gb300");
  std::string note;
  if (!known) {
    note = not_measured(
        recipe, kind,
        fmt::format("their ratio to fp8-current is that of {}", is_hopper ? "an H200" : "a B300"));
  }
  if (recipe.four_bits) return {1, std::string(times_source), note};
  const auto time = [&](const Measured& one) { return is_hopper ? one.hopper : one.blackwell; };
  const double base = time(measured_of("fp8-current"));
  const double own = time(measured_of(recipe.name));
  if (recipe.name == "fp8-current") note.clear();  // which gemm_8bit states
  if (own > 0) return {base / own, std::string(times_source), note};
  // Transformer Engine emulates scales of 128 elements by MXFP8 on Blackwell.
  return {base / time(measured_of("mxfp8")), std::string(times_source),
          not_measured(recipe, kind,
                       "they take as long as mxfp8, by which Transformer Engine emulates them")};
}

}  // namespace stageline
