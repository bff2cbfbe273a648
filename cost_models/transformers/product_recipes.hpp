// How the products of a language model are quantized, and how fast they are then: recipes of
// Transformer Engine and torchao by the name that `dtype=` has for them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cost_models/transformers/kernels.hpp"

namespace stageline {

struct ProductRecipe {
  std::string_view name;         // "mxfp8"
  bool four_bits = false;        // else 8
  bool by_hardware = false;      // scales of blocks are the tensor cores' work
  bool head_and_router = false;  // whether their products are quantized, too
  double kept_bytes = 2;         // of an element that W's product reads, with its scales
  GatheredRows gathered{};       // by tensor-parallel ranks
  std::string_view source;
};
/// fp8, fp8-current, fp8-delayed, fp8-block, fp8-tensorwise, fp8-rowwise, mxfp8, nvfp4.
std::span<const ProductRecipe> product_recipes();
/// Null where the number format quantizes nothing: bf16.
const ProductRecipe* find_product_recipe(std::string_view dtype);

/// FLOPs a second of a recipe's products, casts included, over those that `gemm_8bit` states, which
/// are products in fp8 with current scaling. Of nvfp4 it is 1, and `gemm_4bit` states the rest.
struct ProductSpeed {
  double factor = 1;
  std::string source;  // the measurement
  std::string note;    // that nobody measured it on that chip, and what it is taken for; else empty
};
/// `kind`: of device. The measurements are of H200 NVL and B300, and count for their architectures;
/// those of torchao are of H100.
ProductSpeed product_speed(const ProductRecipe& recipe, std::string_view kind);

}  // namespace stageline
