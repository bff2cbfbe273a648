// Runs a program for real: one worker a lane, each walks its own list, nobody directs. A worker
// waits until what its next op needs is on the board, runs it on real tensors and puts on the board
// that it is done. What needs what is said by the task graph that the simulator runs, too.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <memory>
#include <vector>

#include "sim/costs.hpp"
#include "sim/engine.hpp"
#include "sim/task_graph.hpp"
#include "tools/executor/devices/accelerators.hpp"
#include "tools/executor/run/stage_tensors.hpp"

namespace stageline {

/// What one run of a program gave. Times are since its start; the graph is the program's, with the
/// measured durations, so that whatever reads a simulation reads this.
struct Execution {
  TaskGraph graph;
  TaskTimes times;
  std::vector<std::uint32_t> version;  // by task: weights that a compute op read, or that U made
  std::vector<double> losses;          // by micro-batch
};

/// What a device held in a run, as its allocator reports it.
struct HeldBytes {
  std::int64_t peak = 0;   // all tensors, weights and optimizer state included
  std::int64_t stash = 0;  // of the stashes alone
};

class Peers;

class Executor {
 public:
  /// Lowers the program (throws Deadlock, ProgramError), draws the weights and starts the workers.
  /// `costs` say how long messages and copies take at least; other times in them are not used.
  /// With `peers` this process runs device peers->rank() alone, and the others theirs: what run()
  /// and run_counted() give is whole on rank 0. It outlives the executor.
  Executor(Job job, const Costs& costs, const std::vector<Accelerator>& devices,
           Peers* peers = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// From the first op to the last; weights go on from run to run. A worker that throws stops the
  /// others, and its exception is thrown here. `stop`, where there is one, ends it with Stopped.
  Execution run(const std::atomic<bool>* stop = nullptr);
  /// The same with every message copied and every allocation counted; times are not worth much.
  std::vector<HeldBytes> run_counted(const std::atomic<bool>* stop = nullptr);
  /// When each op of the last run began and ended, a counted one's too: how much a device holds of
  /// what others send it depends on that.
  Execution last_run() const;

  const TaskGraph& graph() const;
  /// The weights of a layer, those of the stage's first replica; and its gradients' sums, which are
  /// 0 after an update.
  const LayerWeights& weights(std::size_t layer) const;

 private:
  struct Crew;
  std::unique_ptr<Crew> crew_;
};

/// Thrown by run when it was told to stop.
struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

}  // namespace stageline
