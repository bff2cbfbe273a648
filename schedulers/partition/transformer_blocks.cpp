#include "schedulers/partition/transformer_blocks.hpp"

#include <fmt/core.h>

#include <string_view>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {

std::vector<BlockLayers> blocks_of(const Model& model) {
  const auto is = [&](int layer, std::string_view kind) {
    return nth(model.layers, layer).kind == kind;
  };
  const auto ends = [&](int layer) {
    return is(layer, "mlp") || is(layer, "moe") || is(layer, "block");
  };
  const int layers = static_cast<int>(model.layers.size());
  std::vector<BlockLayers> blocks;
  for (int at = 0; at < layers; ++at) {
    if (!is(at, "attention") && !is(at, "block")) continue;
    BlockLayers block{at, at};
    while (block.last + 1 < layers && !ends(block.last)) ++block.last;
    if (!ends(block.last)) {
      throw UsageError(fmt::format("a block begins with layer {} of {}, but no mlp ends it",
                                   nth(model.layers, at).name, model.name));
    }
    blocks.push_back(block);
    at = block.last;
  }
  return blocks;
}

}  // namespace stageline
