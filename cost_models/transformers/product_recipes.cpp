// The table of recipes, and what was measured of them.
#include "cost_models/transformers/product_recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "cost_models/transformers/kernel_rates.hpp"

namespace stageline {
namespace {

constexpr std::string_view guide =
    "Megatron-LM, docs/user-guide/features/low_precision_training.md, and Transformer Engine, "
    "docs/features/low_precision_training/performance_considerations, both read 2026-11-29";

constexpr std::string_view torchao =
    "pytorch/ao, torchao/float8 (float8_linear.py keeps inputs in 16 bits), and pytorch/torchtitan, "
    "docs/float8.md (the output layer stays in bf16), both read 2026-11-30";

// Scales: one of 4 bytes a tensor (current, delayed) or 128 elements (block), one of 1 byte for 32
// elements (MXFP8) or 16 (NVFP4). Transformer Engine keeps an input as W reads it, columnwise, and
// Megatron's output layer and router are no layers of Transformer Engine.
constexpr double of_blocks = 1 + 4.0 / 128;
constexpr double of_mxfp8 = 1 + 1.0 / 32;
constexpr double of_nvfp4 = 0.5 + 1.0 / 16;

// Transformer Engine casts before it gathers, and gathers a gradient by rows and by columns where
// its scales are of blocks (v2.10, pytorch/distributed.py, _all_gather_fp8, _all_gather_mxfp8 and
// others, pytorch/module/base.py, grad_output_preprocess). So does torchao with one scale a tensor
// (float8/float8_tensor_parallel.py, Float8ColwiseParallel and Float8RowwiseParallel); with scales
// of rows torchtitan's plain ColwiseParallel gathers 16 bits, and each linear layer casts what was
// gathered (torchtitan, models/llama3/infra/parallelize.py: enable_float8_tensorwise_tp). All read
// 2026-11-30. The gathers of `fp8`, which is no recipe in particular, are in 16 bits.
constexpr GatheredRows one_scale{1, 1, false};
constexpr GatheredRows scales_of_rows{0, 0, true};

constexpr std::array known_recipes{
    ProductRecipe{
        "fp8", false, false, true, 2, {}, "no recipe in particular; all is kept in 16 bits"},
    ProductRecipe{"fp8-current", false, false, false, 1, one_scale, guide},
    ProductRecipe{"fp8-delayed", false, false, false, 1, one_scale, guide},
    ProductRecipe{"fp8-block", false, false, false, of_blocks, {of_blocks, 2 * of_blocks}, guide},
    ProductRecipe{"fp8-tensorwise", false, false, false, 2, one_scale, torchao},
    ProductRecipe{"fp8-rowwise", false, false, false, 2, scales_of_rows, torchao},
    ProductRecipe{"mxfp8", false, true, false, of_mxfp8, {of_mxfp8, 2 * of_mxfp8}, guide},
    ProductRecipe{"nvfp4", true, true, false, of_nvfp4, {of_nvfp4, 2 * of_nvfp4}, guide},
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

// Tokens a second of Llama 3 8B on 8 H100, 8,192 tokens each, FSDP and torch.compile (pytorch/ao,
// docs/source/workflows/training.md, read 2026-11-30).
constexpr std::string_view torchao_source =
    "Llama 3 8B on 8 H100 with torchtitan (pytorch/ao, float8 training, read 2026-11-30)";
constexpr double tokens_bf16 = 6150;
constexpr double tokens_tensorwise = 7689.5;
constexpr double tokens_rowwise = 6768;

// Over tensorwise scaling's, whose speed over bf16 the H100's two rates state: the table says which
// share of the time that these save rowwise ones save.
double speed_of_rowwise() {
  constexpr double saved =
      (1 / tokens_bf16 - 1 / tokens_rowwise) / (1 / tokens_bf16 - 1 / tokens_tensorwise);
  constexpr double peaks = 2;  // of 8 bits over 16
  const KernelRates& rates = find_chip_rates("h100")->rates;
  const double tensorwise = peaks * rates.gemm_8bit / rates.gemm;
  return 1 / (1 - saved * (1 - 1 / tensorwise)) / tensorwise;
}

const Measured& measured_of(std::string_view recipe) {
  return *std::find_if(recipe_times.begin(), recipe_times.end(),
                       [&](const Measured& one) { return one.recipe == recipe; });
}

std::string not_measured(const ProductRecipe& recipe, std::string_view kind,
                         std::string_view taken_for) {
  return fmt::format("products in {} on {}: nobody measured them, {}", recipe.name, kind,
                     taken_for);
}

ProductSpeed speed_of_torchao(const ProductRecipe& recipe, std::string_view kind) {
  const std::string_view family = family_of_kind(kind);
  const bool known = family == "h100" || family == "h200";
  const bool rowwise = recipe.name == "fp8-rowwise";
  std::string note;
  if (!known) {
    note = not_measured(recipe, kind,
                        rowwise ? "their ratio to fp8-tensorwise is that of an H100"
                                : "they take as long as fp8-current");
  }
  return {rowwise ? speed_of_rowwise() : 1, std::string(torchao_source), std::move(note)};
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
  if (recipe.source == torchao) return speed_of_torchao(recipe, kind);
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
