// The gaps between the ops of compute lanes, in which a device may be idle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/analysis/metrics.hpp"
#include "sim/engine.hpp"
#include "sim/program.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

/// The time before an op of a compute lane, or after the lane's last op; it may be 0. Before the
/// first op of a step there are two gaps: until any device begins the step, and from then on.
struct LaneGap {
  static constexpr std::uint32_t no_task = 0xffffffff;

  std::uint32_t task = no_task;  // ends the gap when it starts; no_task: the gap ends with the run
  std::uint32_t phase = 0;       // of the task
  std::uint16_t lane = 0;
  IdleKind kind = IdleKind::fill;  // fill, drain or dependency
  bool opens = false;              // the first gap of its region: of one kind in one phase
  bool until_begins = false;       // ends when any device begins the task's phase
};

/// All gaps in the order of their tasks, so that a pass over them reads memory in order; then one
/// per lane until the end of the run.
class LaneGaps {
 public:
  LaneGaps(const Program& program, const TaskGraph& graph);

  const std::vector<LaneGap>& all() const { return gaps_; }
  std::size_t lanes() const { return computes_.size(); }

  /// Calls visit(number, gap, from, to) for every gap in order, under the given times. The result
  /// of a compute task is available when it ends.
  template <class Visit>
  void walk(const TaskTimes& times, const std::vector<Time>& duration, Visit&& visit) const {
    const Time end = makespan(times);
    const std::vector<Time> begins = phase_begins(times, duration);
    std::vector<Time> free(lanes());
    for (std::size_t g = 0; g != gaps_.size(); ++g) {
      const LaneGap& gap = gaps_[g];
      const Time from = free[gap.lane];
      if (gap.task == LaneGap::no_task) {
        visit(g, gap, from, std::max(from, end));
        continue;
      }
      const Time length = duration[gap.task];
      const Time start = std::max(from, times.available[gap.task] - length);
      const Time to = gap.until_begins ? std::clamp(begins[gap.phase], from, start) : start;
      visit(g, gap, from, to);
      free[gap.lane] = gap.until_begins ? to : start + length;
    }
  }

 private:
  // The tasks of a lane in a phase; their numbers grow along the lane. Fill lasts up to the first
  // backward, or up to the first forward that waits for one; drain begins after the last forward. A
  // device with only one of the two fills up to its first op and drains after its last.
  struct Phase {
    std::uint32_t first = LaneGap::no_task;
    std::uint32_t fill_ends = LaneGap::no_task;
    std::uint32_t last_forward = LaneGap::no_task;
    bool backward = false;
  };
  struct Region {
    std::uint32_t phase = 0;
    IdleKind kind = IdleKind::fill;
    bool any = false;
  };

  void find_phases();
  void note(Op op, std::uint32_t task);
  bool waits_for_backward(std::uint32_t task, std::uint32_t phase) const;
  void add_all();
  void add(LaneGap gap, std::uint32_t phase, Region& before);
  std::vector<Time> phase_begins(const TaskTimes& times, const std::vector<Time>& duration) const;

  const Program& program_;
  const TaskGraph& graph_;
  std::vector<bool> computes_;              // by lane
  std::vector<std::vector<Phase>> phases_;  // by lane and phase
  std::uint32_t phases_seen_ = 0;
  std::vector<LaneGap> gaps_;
};

}  // namespace stageline
