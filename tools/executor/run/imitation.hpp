// Imitated computing: an op waits for its predicted time, and leaves messages of the true sizes
// whose bytes mean nothing. It tests order, messages and runtime where lanes outnumber the cores;
// it tests no arithmetic and no memory.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/costs.hpp"
#include "sim/task_graph.hpp"
#include "tools/executor/run/exchange.hpp"
#include "tools/executor/run/job.hpp"

namespace stageline::executor {

class Imitation {
 public:
  /// For the devices that run in this process. `job`, `graph` and `exchange` outlive it. A message
  /// is as large as message_bytes() says.
  Imitation(const Job& job, const Costs& costs, const TaskGraph& graph, Exchange& exchange,
            const std::function<bool(int device)>& is_here);

  /// After a compute op: puts its messages and its replica's gradients into the exchange. By the
  /// task's worker.
  void leave(std::uint32_t task);
  /// Before a compute op, between processes: frees the messages that have come for it.
  void take(std::uint32_t task);
  /// OFFLOAD and PREFETCH: copies as many bytes as the stash has.
  void copy(Op op);

 private:
  // What a task leaves in a slot of the exchange.
  struct Message {
    Cargo cargo;
    int wire;
    std::uint32_t number;
    Bytes bytes;
  };
  at::Tensor of_size(Bytes bytes) const;
  void note_reductions(const std::function<bool(int device)>& is_here);

  const Job& job_;
  const TaskGraph& graph_;
  Exchange& exchange_;
  std::vector<std::vector<Message>> messages_;  // by task that sends them
  std::vector<bool> ends_sum_;                  // by task: the last W of an update on its replica
  std::vector<Bytes> gradients_;                // by stage
  std::vector<Bytes> stash_;                    // by stage
  at::Tensor bytes_;                            // as many as the largest message has
};

/// Makes the timed waits of the calling thread exact to some microseconds.
void wait_exactly();

/// Returns at `end`, or earlier by an exception of `check`, which is called every few milliseconds.
void wait_until(std::chrono::steady_clock::time_point end, const std::function<void()>& check);

}  // namespace stageline::executor
