// The kinds of ops, for the two files that define them.
#pragma once

#include <vector>

#include "tools/executor/tensors/tensor_ops.hpp"

namespace stageline::executor {

using Sizes = std::vector<std::vector<int64_t>>;
inline Sizes no_weights(const TensorOp&) { return {}; }

inline at::Tensor& gradient_of(const OpWeights& weights, std::size_t which) {
  return (*weights.gradients)[weights.first + which];
}

// tensor_products.cpp
extern const OpPasses conv_passes;
extern const OpPasses linear_passes;
extern const OpPasses attention_passes;
extern const OpPasses embedding_passes;

}  // namespace stageline::executor
