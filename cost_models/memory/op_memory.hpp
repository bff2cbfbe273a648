// What the ops of a stage hold while they run, layer by layer.
#pragma once

#include <vector>

#include "cost_models/recomputation.hpp"
#include "sim/costs.hpp"
#include "sim/model.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// By layer: its share of its stage's stash, and of what is left of that when I has ended. The
/// shares of a stage's layers add up to StageCosts::stash() and stash_after_input_grad().
struct LayerStash {
  std::vector<Bytes> made;
  std::vector<Bytes> left;
};

/// Sets the steps and the workspaces of all stages, and the part of each edge's activation that the
/// sender's stash holds, too; of stages that are rebuilt block by block the boundary and the stash
/// as stage_costs() says. `stages` and `edges` have all their other bytes. `recomputed`: by stage.
/// Throws UsageError where a sum does not fit into 64 bits.
void add_op_memory(std::vector<StageCosts>& stages, std::vector<EdgeCosts>& edges,
                   const Model& model, const Partition& partition, const LayerStash& stash,
                   const std::vector<StageRecomputation>& recomputed);

}  // namespace stageline
