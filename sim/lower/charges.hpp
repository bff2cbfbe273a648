// Charges of a program's tasks: a duration from the tables, and a path. For sim/lower/ alone.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/costs.hpp"
#include "sim/rules.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

/// Ring all-reduce: 2(r-1) rounds, each moves 1/r of the gradients. Throws UsageError where that
/// takes longer than `longest_run`.
Time ring_time(Bytes bytes, int replicas, const Route& route);

struct Charge {
  Time duration{};
  std::uint16_t path = 0;
};

class Charges {
 public:
  /// Throws ProgramError where program and costs have different stages, edges or devices.
  Charges(const Program& program, const Costs& costs, const StageGraph& stages);

  Time duration(Op op) const;

  /// The time of an overlapped pair.
  Time of_pair(Op first, Op second) const;

  /// The op as a task of that lane.
  Charge of(Op op, std::uint32_t lane);

  /// Whether the charge does not depend on the op's number.
  bool same_for_all(Op op) const;

  /// A task of that lane takes the path. The messages of a batch have lanes of their own, so where
  /// messages block a path may have several lanes.
  void used(std::uint16_t path, std::uint32_t lane);

  /// The latency of a message's route: from the end of its SEND to its arrival.
  Time latency(Op message) const;

  /// Moves the paths into the graph. A resource that only one lane uses delays no task, and is left
  /// out.
  void give_paths(TaskGraph& graph);

  /// The bytes of a task as a flow, on that path; none of what is none.
  Bytes bytes_of(Op op, std::uint16_t path) const;

  /// Under fair sharing, how compute and flows slow each other.
  void give_slowdowns(TaskGraph& graph) const;

  /// Under fair sharing, the bytes of all flows, and give_slowdowns(). Behind give_paths.
  void give_bytes(TaskGraph& graph) const;

  /// Sets the compute tasks' durations to what they take on their devices (Costs::pace).
  void set_pace(TaskGraph& graph) const;

  /// How many times as long as the stages say a task may take, by pace and slowdown; at least 1.
  double most_slowdown() const;

 private:
  void find_last_ops();
  Time on_the_wire(Op op) const;
  Ends ends_of_task(Op op) const;
  const Route& route_of(Op op) const;
  Route slowest_hop(Op op) const;
  std::uint16_t path_of(Op op, std::uint32_t lane);
  std::uint16_t reduction_path(Op op, std::uint32_t lane);
  std::uint16_t add_path(Path path, std::uint32_t lane);
  Path path_on(const Route& route) const;
  void check_fit() const;

  const Program& program_;
  const Costs& costs_;
  const StageGraph& stages_;
  bool blocks_;
  std::vector<Path> paths_{};
  std::vector<std::uint32_t> path_lane_{};     // by path: the lane that uses it
  std::vector<std::uint16_t> path_of_pair_{};  // devices × (devices, to host, from host)
  std::map<std::pair<int, std::size_t>, std::uint16_t> ring_path_{};  // by stage and pair
  std::map<std::pair<int, std::size_t>, std::uint16_t> copy_path_{};  // by lane and pair
  std::map<std::pair<int, int>, std::uint16_t> reduction_path_{};     // by stage and replica
  std::map<std::pair<int, int>, Time> last_op_{};  // the shortest one before a reduction in buckets
};

}  // namespace stageline
