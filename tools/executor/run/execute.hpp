// Runs a program for real: one worker a lane, each of which walks its own list; there is no central
// loop. A worker waits until all that its next op needs is on the completion board, runs it on real
// tensors and publishes there that it is done. The dependencies are those of the task graph that
// the simulator runs, too.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "sim/costs.hpp"
#include "sim/task_graph.hpp"
#include "tools/executor/devices/accelerators.hpp"
#include "tools/executor/run/job.hpp"
#include "tools/executor/run/run_record.hpp"
#include "tools/executor/run/worker_pool.hpp"

namespace stageline::executor {

class Peers;

class Executor {
 public:
  /// Lowers the program (throws Deadlock, ProgramError), draws the weights and starts the workers.
  /// Messages and copies take at least the times of `costs`, of which no others are used. With
  /// `peers` (which outlives the executor) this process runs only the device of its rank: the
  /// results of run() and run_counted() are complete on rank 0.
  Executor(Job job, const Costs& costs, const std::vector<Accelerator>& devices,
           Peers* peers = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// From the first op to the last; each run continues with the weights of the one before. A worker
  /// that throws stops the others, and its exception is thrown here. Throws Stopped once `stop` is
  /// true.
  Execution run(const std::atomic<bool>* stop = nullptr);
  /// The same with every message copied and every allocation counted, which makes it slower. For an
  /// imitated job nothing is counted: all bytes are 0.
  std::vector<HeldBytes> run_counted(const std::atomic<bool>* stop = nullptr);
  /// The last run, counted or not: the bytes that a device holds of its messages depend on when
  /// ops ran.
  Execution last_run() const;

  const TaskGraph& graph() const;
  /// Not of an imitated job. The weights of a layer on one of the stage's replicas, and the sums of
  /// its gradients, which are 0 after an update. With `peers`, of the replica on this process's
  /// device.
  const LayerWeights& weights(std::size_t layer, int replica = 0) const;

 private:
  struct Run;
  std::unique_ptr<Run> run_;
};

}  // namespace stageline::executor
