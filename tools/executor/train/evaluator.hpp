// Evaluates a state of a training: loss and accuracy on the test set under its weights.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <atomic>

#include "sim/placement.hpp"
#include "tools/executor/train/batches.hpp"
#include "tools/executor/train/training_state.hpp"
#include "tools/lab/training/log.hpp"

namespace stageline::executor {

class Evaluator {
 public:
  /// A model of its own, with the partition's stages. `data` outlives it.
  Evaluator(const ModelShape& shape, const at::TensorOptions& options, const lab::DataSource& data);

  /// Mean loss and accuracy over the whole test set; batch norms go by the running statistics of
  /// the first replica. `stage_of`: of each layer. The evaluation's `end` is left at 0. Throws
  /// Stopped once `stop` is true.
  lab::Evaluation evaluate(const TrainingState& state, const Partition& partition,
                           const std::atomic<bool>* stop = nullptr);

 private:
  TensorModel model_;
  const lab::DataSource& data_;
};

/// 64 bits of all weights' bytes, in the order of the model (FNV-1a): equal for equal weights.
std::string digest(const TrainingState& state, const Partition& partition);

}  // namespace stageline::executor
