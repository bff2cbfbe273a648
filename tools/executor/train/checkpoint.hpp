// A training on disk, between two of its steps: all that a run resumed from there takes to reach
// the same final weights to the last bit.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <string>
#include <vector>

#include "tools/executor/train/training_state.hpp"
#include "tools/lab/training/log.hpp"

namespace stageline::executor {

struct Checkpoint {
  std::string settings;        // that must be equal to resume: a JSON object of words and numbers
  TrainingState state;         // whole
  std::vector<double> losses;  // by micro-batch, from the first
  std::vector<lab::Evaluation> evaluations;
  double wall_seconds = 0;
};

/// LibTorch's own format: torch.load(file) gives a dictionary with "meta" (JSON) and "tensors".
/// Written to a file beside it, then renamed.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Throws UsageError for a file that is no checkpoint or not whole.
Checkpoint read_checkpoint(const std::string& path);

/// The newest weights by name, for PyTorch: torch.load(file)["conv1.0"].
void write_weights(const std::string& path, const TrainingState& state, const Partition& partition,
                   const ModelShape& shape);

}  // namespace stageline::executor
