// Where a partition cuts a model: the layers of each stage and the tensors that pass between them.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <vector>

#include "sim/placement.hpp"
#include "sim/program.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline::executor {

struct Cut {
  std::vector<std::vector<std::size_t>> layers;    // by stage, ascending
  std::vector<std::vector<std::size_t>> crossing;  // by edge of the program: whose outputs go there
};

/// `edges`: the program's. Throws ProgramError when they are not those of the model so cut.
Cut cut_of(const TensorModel& model, const Partition& partition,
           const std::vector<StageEdge>& edges);

}  // namespace stageline::executor
