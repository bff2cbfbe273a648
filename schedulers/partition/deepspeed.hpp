// What DeepSpeed's PipelineModule cuts by weights of its layers share: `parameters`, `type:regex`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedulers/partition/partitioner.hpp"
#include "schedulers/partition/transformer_blocks.hpp"

namespace stageline {

/// A block, or a layer that is in none.
std::vector<BlockLayers> deepspeed_layers(const Model& model);

/// The last item of every part but the last. Every part has an item. The difference between the
/// largest and the smallest part is small: of the cuts of each beginning the one with the least is
/// kept, of equal ones that whose last part begins last; so that a smaller one may be missed, as by
/// DeepSpeed, deepspeed/runtime/utils.py: partition_balanced (read 2026-11-30).
std::vector<int> balanced_parts(const std::vector<std::int64_t>& weights, int parts);

/// The plan of a cut by these weights, one a layer of deepspeed_layers(). Throws UsageError where
/// there are fewer of these than stages, or more than 4096.
PartitionPlan plan_by_weights(const PartitionRequest& request, const std::string& method,
                              const std::vector<std::int64_t>& weights);

}  // namespace stageline
