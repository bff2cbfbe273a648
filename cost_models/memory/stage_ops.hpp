// What each kind of op of one stage holds while it runs, layer by layer.
#pragma once

#include <cstddef>
#include <vector>

#include "cost_models/memory/op_memory.hpp"
#include "cost_models/memory/stage_tensors.hpp"
#include "cost_models/recomputation.hpp"
#include "sim/costs.hpp"
#include "sim/model.hpp"

namespace stageline {

/// Sets the steps and the workspaces of a stage; where it is rebuilt block by block the boundary
/// and the stash, too. `number`: of the stage. `layers`: of the model, that it has. `tensors`: that
/// it makes or reads. Throws UsageError where a sum does not fit into 64 bits.
void set_stage_ops(StageCosts& stage, std::size_t number, const Model& model,
                   const std::vector<std::size_t>& layers, const std::vector<bool>& reads_data,
                   const LayerStash& stash, const StageRecomputation& recomputed,
                   const std::vector<StageTensor>& tensors);

}  // namespace stageline
