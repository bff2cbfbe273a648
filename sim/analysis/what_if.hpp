// The same order of ops with other durations.
#pragma once

#include <array>
#include <vector>

#include "sim/engine.hpp"
#include "sim/program.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

/// What-if durations of a task graph. Every change adds to the earlier ones.
class WhatIf {
 public:
  WhatIf(const Program& program, const TaskGraph& graph);

  const std::vector<Time>& duration() const { return duration_; }
  TaskTimes times() const { return sweep(graph_, duration_, lag_, head_start_); }
  /// The work of the busiest device.
  Time most_work() const;

  /// Tasks of the kinds for which `which` is true take no time from now on. Returns false if they
  /// took none before.
  bool make_free(bool (*which)(OpKind));

  /// For each kind of op, every stage takes the mean of all stages, in proportion to the replicas
  /// that share its work. Returns false if that is what they took before.
  bool make_equal();

 private:
  __extension__ using Wide = __int128;
  struct Sum {
    Wide time = 0;
    std::int64_t count = 0;
    Time equal{};
  };
  static constexpr std::size_t compute_kinds = 6;  // the first ones of OpKind

  std::vector<Sum>& sums_of(std::uint32_t task);
  void add_up();
  void divide(std::vector<Sum>& sums) const;
  Time equal_duration(std::uint32_t task);

  const Program& program_;
  const TaskGraph& graph_;
  std::vector<Time> duration_;    // by task
  std::vector<Time> lag_;         // by path
  std::vector<Time> head_start_;  // by path
  std::array<bool, op_kinds> takes_time_{};
  // By kind, or pair of kinds; and by stage.
  std::array<std::vector<Sum>, compute_kinds*(compute_kinds + 1)> sums_;
};

}  // namespace stageline
