// What a run of a program leaves: when each task began and ended, which weights it read, the
// losses, and how much memory the devices held. In a run by several processes, rank 0 gathers it as
// text.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/task_graph.hpp"
#include "tools/executor/run/completion_board.hpp"
#include "tools/executor/run/exchange.hpp"
#include "tools/executor/run/job.hpp"

namespace stageline::executor {

/// Times are since the start of the run. The graph is the program's with the measured durations, so
/// that a reader of simulations can read it.
struct Execution {
  TaskGraph graph;
  TaskTimes times;
  std::vector<std::uint32_t> version;  // by task: of the weights that it read; of U: that it made
  std::vector<double> losses;          // by micro-batch
};

/// Bytes that a device held in a run, as its allocator reports them.
struct HeldBytes {
  std::int64_t peak = 0;       // all tensors, weights and optimizer state included
  std::int64_t stash = 0;      // of the stashes alone
  std::int64_t optimizer = 0;  // of the optimizer's state alone
};

/// Filled by the workers, each its own tasks.
struct RunRecord {
  /// `losses`: those of the exchange. All outlive it.
  RunRecord(const Job& job, const TaskGraph& graph, Tensors& losses);

  const Job& job;
  const TaskGraph& graph;
  Tensors& losses;  // by micro-batch
  CompletionBoard board;
  std::vector<Time> start;             // by task
  std::vector<std::uint32_t> version;  // by task
  std::vector<HeldBytes> held;         // by device

  /// What this process knows as the device's: its tasks, the messages that it received, its losses.
  std::string text_of(int device) const;
  void read(const std::string& text);

  /// `between_processes`: messages took what they took, not what the graph says of their links.
  /// `wires_copied`: copies took what the graph says.
  Execution execution(bool between_processes, bool wires_copied) const;
};

}  // namespace stageline::executor
