// What makes a run of the executor a part of a training: data, the table of versions, where it
// begins, and what it shows as it goes.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tools/executor/train/batches.hpp"
#include "tools/executor/train/reads.hpp"
#include "tools/executor/train/training_state.hpp"

namespace stageline {

struct Course {
  Reads reads;              // of the whole training, from its first micro-batch on
  Batches data;             //
  TrainingState start;      // whole; step 0: from its own seed's weights on (then it may be empty)
  std::vector<Stop> stops;  // rising, behind start.step, whole ones on rounds
  ShowState show;
  /// The loss of each micro-batch, by its number; in order, by one thread at a time.
  std::function<void(std::uint32_t, double)> lost;
};

}  // namespace stageline
