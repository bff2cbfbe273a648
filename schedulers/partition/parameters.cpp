// DeepSpeed's partition_method='parameters': stages of even numbers of parameters.
#include <cstdint>
#include <string>
#include <vector>

#include "schedulers/partition/deepspeed.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::parameters_partitioner {
namespace {

PartitionPlan plan(const PartitionRequest& request) {
  std::vector<std::int64_t> weights;
  std::int64_t sum = 0;
  for (const BlockLayers& layer : deepspeed_layers(request.model)) {
    std::int64_t count = 0;
    for (int i = layer.first; i <= layer.last; ++i)
      count += nth(request.model.layers, i).parameters;
    weights.push_back(count);
    sum += count;
  }
  if (sum == 0) {
    throw UsageError("parameters: " + request.model.name +
                     " does not say how many parameters its layers have");
  }
  return plan_by_weights(request, "parameters", weights);
}

}  // namespace

extern const Partitioner entry = {
    "parameters", "even numbers of parameters, as DeepSpeed's partition_method",
    "DeepSpeed, deepspeed/runtime/pipe/module.py: PipelineModule._partition_layers", "", plan};

}  // namespace stageline::parameters_partitioner
