// How a run of the executor is part of a training: its data, the versions that its passes read, the
// state it begins with, and what it reports on the way.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tools/executor/train/batches.hpp"
#include "tools/executor/train/training_state.hpp"
#include "tools/executor/train/version_plan.hpp"

namespace stageline::executor {

struct TrainingPlan {
  VersionPlan versions;  // of the whole training, from its first micro-batch on
  Batches data;
  TrainingState start;      // whole; at step 0 it may be empty: weights are drawn from the seed
  std::vector<Stop> stops;  // rising, behind start.step, whole ones on rounds
  ShowState show;
  /// Called with the loss of each micro-batch and its number in the training, by one thread at a
  /// time.
  std::function<void(std::uint32_t microbatch, double loss)> report_loss;
};

}  // namespace stageline::executor
