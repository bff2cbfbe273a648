// What the devices of one run have in common: the program, the model it trains, and how.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/placement.hpp"
#include "sim/program.hpp"
#include "sim/rules.hpp"
#include "tools/executor/tensors/tensor_model.hpp"
#include "tools/executor/train/recipe.hpp"
#include "tools/executor/train/training_plan.hpp"

namespace stageline::executor {

/// What is trained, and how.
struct Training {
  ModelShape shape;
  int batch = 1;  // samples in a micro-batch
  Optimizer optimizer = Optimizer::momentum;
  at::ScalarType dtype = at::kFloat;
  Recipe recipe{};
  std::uint64_t seed = 1;  // of weights; micro-batch m is drawn from seed + 1 + m
  int distinct = 8;        // micro-batches drawn; later ones repeat them
  /// Tokens of each sequence of micro-batch m, or of slice m, by m % size; a step has a multiple of
  /// so many. Empty: sequences are as long as the shape says, and slices equal.
  std::vector<std::int64_t> lengths{};
};

/// Everything about a run that all its devices share and none changes.
struct Job {
  Program program;  // completed and valid
  StageGraph graph;
  Partition partition;
  Training training;
  bool separate = false;         // received tensors are copied, as from another device's memory
  std::vector<int> staleness{};  // by stage, in updates, of the steady state: for corrections
  /// The training that this run is part of: it begins at the plan's start, and every pass reads the
  /// version that the plan names. Null for a run that only measures times; its passes read the
  /// newest weights that the program's rule allows.
  std::shared_ptr<const TrainingPlan> plan = nullptr;
  /// Ops wait for the times of the costs instead of computing (run/imitation.hpp).
  bool imitated = false;
  /// Each replica of a stage keeps the optimizer's state of its share of the parameters
  /// (run/optimizer_shards.hpp). For runs without a plan and without corrections.
  bool sharded_optimizer = false;
};

}  // namespace stageline::executor
