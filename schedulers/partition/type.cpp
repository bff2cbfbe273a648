// DeepSpeed's partition_method='type:REGEX': stages of even numbers of the layers whose class the
// expression is found in, whatever its case. Here a layer's name and kind are searched, and a block
// is also a ParallelTransformerLayerPipe, as in Megatron-DeepSpeed, whose method is
// type:transformer.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <regex>
#include <string>
#include <vector>

#include "schedulers/partition/deepspeed.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::type_partitioner {
namespace {

constexpr std::size_t longest_expression = 100;
constexpr std::size_t longest_text = 200;  // that is searched

std::regex expression_of(const std::string& text) {
  if (text.empty() || text.size() > longest_expression) {
    throw UsageError(fmt::format(
        "type: a regular expression of at most {} letters follows, which is found in the names or "
        "kinds of layers, as in type:transformer or type:block",
        longest_expression));
  }
  try {
    return std::regex(text, std::regex::ECMAScript | std::regex::icase);
  } catch (const std::regex_error&) {
    throw UsageError(fmt::format("type: \"{}\" is no regular expression", text));
  }
}

PartitionPlan plan(const PartitionRequest& request) {
  const std::regex expression = expression_of(request.options);
  const auto found = [&](const std::string& text) {
    return std::regex_search(text.substr(0, longest_text), expression);
  };
  std::vector<std::int64_t> weights;
  const std::vector<BlockLayers> blocks = blocks_of(request.model);
  for (const BlockLayers& layer : deepspeed_layers(request.model)) {
    bool is = std::any_of(blocks.begin(), blocks.end(),
                          [&](const BlockLayers& block) { return block.first == layer.first; }) &&
              found("ParallelTransformerLayerPipe");
    for (int i = layer.first; i <= layer.last; ++i) {
      is = is || found(nth(request.model.layers, i).name) ||
           found(nth(request.model.layers, i).kind);
    }
    weights.push_back(is ? 1 : 0);
  }
  if (std::find(weights.begin(), weights.end(), 1) == weights.end()) {
    throw UsageError(fmt::format(
        "type: \"{}\" is found in no name and no kind of a layer of {}, whose first and last are {} "
        "of kind {} and {} of kind {}",
        request.options, request.model.name, request.model.layers.front().name,
        request.model.layers.front().kind, request.model.layers.back().name,
        request.model.layers.back().kind));
  }
  return plan_by_weights(request, "type:" + request.options, weights);
}

}  // namespace

extern const Partitioner entry = {
    "type", "even numbers of the layers that an expression names, as DeepSpeed's partition_method",
    "DeepSpeed, deepspeed/runtime/pipe/module.py: PipelineModule._partition_layers",
    "a regular expression  (type:transformer, of Megatron-DeepSpeed: the blocks)", plan};

}  // namespace stageline::type_partitioner
