// Training under a program's staleness on one device, a pass after the other: every pass reads the
// version that the table says, from a short history of the weights. No pipeline, no messages, one
// micro-batch's activations at a time; and to the last bit what the pipelined run gives.
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
#include "tools/executor/run/stage_tensors.hpp"

namespace stageline {

/// What is trained, in which stages, and with which delays.
struct DelayedJob {
  Training training;
  Partition partition;
  Placement placement;  // of the program: shares of divided I
  WeightRule weights = WeightRule::flush;
  std::string correction = "none";
  Course course;
};

/// Trains from the course's start to the end of its table. Throws Stopped when `stop` is set, and
/// std::logic_error if the table cannot be followed.
void train_delayed(const DelayedJob& job, at::Device where,
                   const std::atomic<bool>* stop = nullptr);

}  // namespace stageline
