// Devices of one machine that compute at the same time slow each other.
#pragma once

#include <vector>

#include "sim/engine.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

/// How the devices of a machine slow each other: cores share caches and memory, GPUs share power
/// and a host.
struct Interference {
  /// slowdown[k - 1]: how many times as long an op takes while k other devices of its machine
  /// compute, at least 1. The last entry is also that of more devices. Empty: they do not meet.
  std::vector<double> slowdown;
  std::vector<int> machine;  // by device; devices meet only within a machine
};

/// Simulates the graph with its durations as those of an op that computes alone, and sets the
/// durations of the compute tasks to what they take beside the ops that run meanwhile: such a
/// duration D meets D = alone + ∫ (1 - 1 / slowdown(t)) dt over the task's own span. The fixed
/// point is found by repeated simulation, until no duration changes by more than 0.01 %, at most 64
/// times. O(passes · tasks · log tasks). Without a slowdown it is `simulate`.
///
/// Under fair sharing it is run_fair, and the durations of all tasks are set to what they took: the
/// rate of compute is then 1 / (slowdown(t) · (1 + Σ γ)), where what communication
/// takes of it is spread evenly over an op for the first factor.
TaskTimes simulate_together(TaskGraph& graph, const Interference& interference);

}  // namespace stageline
