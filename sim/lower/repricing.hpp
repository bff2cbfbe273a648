// A compiled program at other costs: its tasks, lanes and needs stay, and only what they take is
// found again.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/costs.hpp"
#include "sim/program.hpp"
#include "sim/task_graph.hpp"
#include "sim/wires.hpp"

namespace stageline {

/// Ops of one kind, stage and lane take the same time unless their route depends on their number:
/// there are some dozens of classes of tasks, where there are thousands of tasks.
class Repricing {
 public:
  /// Compiles the program, whose messages must be async. Refers to it; it must outlive this.
  /// Throws what compile() throws.
  Repricing(const Program& program, const Costs& costs);

  /// What compile(program, costs) returns; the numbers of the paths may be others. Threads may call
  /// it at the same time. Throws what compile() throws. O(tasks), a copy of them.
  TaskGraph with(const Costs& costs) const;

  /// At the costs of the beginning.
  const TaskGraph& graph() const { return graph_; }

 private:
  const Program& program_;
  StageGraph stages_;
  TaskGraph graph_;
  std::vector<std::uint32_t> class_of_;  // by task
  std::vector<std::uint32_t> first_;     // by class: its first task
  std::vector<std::uint32_t> size_;      // by class
};

}  // namespace stageline
