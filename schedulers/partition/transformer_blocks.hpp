// The blocks of a transformer among its layers.
#pragma once

#include <vector>

#include "sim/model.hpp"

namespace stageline {

/// A block: a layer of kind attention to the next of kind mlp or moe, or one layer of kind block.
struct BlockLayers {
  int first = 0;
  int last = 0;
};

/// In order; empty where the model has none. Throws UsageError where a block begins that no mlp
/// ends.
std::vector<BlockLayers> blocks_of(const Model& model);

}  // namespace stageline
