// The bare recurrence of 1F1B over a block of scenarios: what a batched engine costs at least.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/task_graph.hpp"
#include "tests/benchmarks/pipeline.hpp"

namespace stageline::bench {

/// One kind of op: its durations, and when its results are at their reader, in picoseconds, as
/// [microbatch][device][scenario].
struct BareOps {
  std::vector<std::int64_t> duration;
  std::vector<std::int64_t> available;
};

/// The order of bare_recurrence() on wires of their own, over blocks as BatchedSweep takes them.
class BareBatch {
 public:
  explicit BareBatch(const Pipeline& pipeline);

  /// Those of a graph of the same pipeline: tasks × BatchedSweep::width.
  void set_durations(const TaskGraph& graph, std::span<const std::int64_t> duration);

  void run();

  /// Of the last run, by scenario.
  std::vector<std::int64_t> makespans() const;

 private:
  std::int64_t devices_;
  std::int64_t microbatches_;
  BareOps forward_;
  BareOps backward_;
  BareOps send_forward_;
  BareOps send_backward_;
  std::vector<std::int64_t> device_free_;
  std::vector<std::int64_t> port_free_;
};

}  // namespace stageline::bench
