// Training under a program's staleness on one device, one pass after the other: every pass reads
// the version that the version plan names, from a short history of the weights. No pipeline, no
// messages, one micro-batch's activations at a time; the result equals the pipelined run's to the
// last bit.
//
//     m:       0   1   2   3   …        F of micro-batch m reads version forward[m], B version
//     reads:   0   0   0   1   …        weight_grad[m], and its update makes version m + 1
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "sim/placement.hpp"
#include "tools/executor/run/job.hpp"

namespace stageline::executor {

/// What is trained, in which stages, and with which delays.
struct DelayedJob {
  Training training;
  Partition partition;
  Placement placement;  // of the program: shares of divided I
  WeightRule weights = WeightRule::flush;
  std::string correction = "none";
  TrainingPlan plan;
};

/// Trains from the plan's start to the end of its versions. Throws Stopped once `stop` is true, and
/// std::logic_error if the plan cannot be followed.
void train_delayed(const DelayedJob& job, at::Device where,
                   const std::atomic<bool>* stop = nullptr);

}  // namespace stageline::executor
