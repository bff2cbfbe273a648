// Many scenarios of one graph at once: the recurrence of sweep() over blocks of durations.
//
//   duration   task 0: │ s0 s1 … s15 │  task 1: │ s0 s1 … s15 │ …      a block, structure of arrays
//
// The order of the tasks in their lanes is the same in all scenarios, and so is the order in which
// shared resources serve them, where run() would choose that anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

class BatchedSweep {
 public:
  static constexpr std::size_t width = 16;  // scenarios of a block

  /// Copies what it needs of the graph, and ignores shared resources.
  explicit BatchedSweep(const TaskGraph& graph);

  /// Every resource serves its tasks in the order in which they start in `nominal`, a run() of the
  /// graph: with the durations of that run, the ends are those of run(). Links that are shared at
  /// fair rates have no such order: throws UsageError for a graph that has any.
  BatchedSweep(const TaskGraph& graph, const TaskTimes& nominal);

  std::uint32_t tasks() const { return static_cast<std::uint32_t>(steps_.size()); }

  /// The ends of all tasks of `width` scenarios in picoseconds, exactly those of sweep() with the
  /// same durations; `duration` and `available` are tasks × width, task by task, available with the
  /// lag of a task's path as in TaskTimes. Durations are ≥ 0, and their sum in a scenario is at
  /// most `longest_run`. Compiled for AVX-512, AVX2 and neither; all give the same bytes.
  void ends(std::span<const std::int64_t> duration, std::span<std::int64_t> available) const;

  /// The last of these by scenario: `makespan` has `width` entries.
  void makespans(std::span<const std::int64_t> available, std::span<std::int64_t> makespan) const;

  /// A task with its needs, as the loop reads it.
  struct Step {
    std::uint32_t task = 0;  // where its durations and ends are
    std::uint32_t lane = 0;
    std::uint32_t need_begin = 0;
    std::uint32_t need_end = 0;
    std::uint32_t held_begin = 0;  // resources, numbered on behind the lanes
    std::uint32_t held_end = 0;
    std::int64_t lag = 0;
    std::int64_t head_start = 0;
  };

 private:
  void add_steps(const TaskGraph& graph, const std::vector<std::uint32_t>& order);

  std::vector<Step> steps_;
  std::vector<std::uint32_t> need_;  // tasks
  std::vector<std::int64_t> lag_;    // by entry of need_: that of the needed task's path
  std::vector<std::uint32_t> held_;
  std::size_t lanes_ = 0;  // and resources
  bool plain_ = true;      // no head starts, no resources
};

}  // namespace stageline
