// How the period of a program that repeats follows from what its ops take: exact slopes, and how
// far they hold.
//
//   period                     ╱  another cycle is critical
//     │              base ___╱·
//     │            ___───'  ·         the period is the largest of many straight lines, one for
//     │  _____───'         ·          each cycle, so it is convex: a gain only gets smaller, a loss
//     └──┬─────────┼───────┬── factor only larger
//      least       1      most        the slopes at 1 hold from `least` to `most`
//
// A part of all times (the backwards of a stage, the latencies) is multiplied by a factor. At 1
// several cycles may be critical, with different amounts of that part: then the slopes of faster
// and of slower differ.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/analysis/steady_state.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

/// What the tasks of a graph take, or a part of it; by task.
struct TaskTable {
  std::vector<Time> duration;
  /// Each by task: an overlapped pair takes the longest of its duration and of these, which of
  /// other tasks are equal. Empty without pairs. A pair of ops a and b that hides the share o of
  /// the shorter one takes max(a + b − o·a, a + b − o·b); one that hides transfers takes all its
  /// compute, or a, or b, or all its transfers.
  std::vector<std::vector<Time>> others;
  std::vector<Time> lag;
  std::vector<Time> head_start;
};

/// All times of the graph, without other durations.
TaskTable table_of(const TaskGraph& graph);

/// The longest duration of a task.
Time longest_of(const TaskTable& table, std::uint32_t task);

/// The times with `part`, which is at most all of them, multiplied by `factor` ≥ 0: each rounded
/// once.
TaskTable scaled(const TaskTable& all, const TaskTable& part, double factor);

/// Exactly time / rounds.
struct PeriodSlope {
  std::int64_t time = 0;  // picoseconds
  std::int64_t rounds = 1;
  double value() const { return static_cast<double>(time) / static_cast<double>(rounds); }
};

/// d period / d factor at 1: 0 ≤ faster ≤ slower.
struct PeriodSlopes {
  PeriodSlope faster;  // from below
  PeriodSlope slower;  // from above
};

/// The factors up to which a slope holds.
struct SlopeReach {
  double least = 0;  // 0: down to no time at all
  double most = 1;   // `PeriodCurve::most_factor`: at least so far
};

class PeriodCurve {
 public:
  static constexpr double most_factor = 10;

  /// `events`: the event graph of a run of `graph`, in which no compute was slowed by others and
  /// nothing was shared at fair rates; `all`: what its tasks take, the longest of each task's
  /// durations being that of the graph. O(edges), plus the potentials of the period (Bellman and
  /// Ford).
  PeriodCurve(const TaskGraph& graph, EventGraph events, TaskTable all);

  const Period& period() const { return period_; }

  /// The period of the same order with the part multiplied by `factor` ≥ 0.
  Period at(const TaskTable& part, double factor) const;

  /// Exact: the least and the largest amount of the part, per round, on any critical cycle.
  PeriodSlopes slopes(const TaskTable& part) const;

  /// By the lines of the cycles that are critical elsewhere (Newton's method from outside, which
  /// ends because there are finitely many cycles).
  SlopeReach reach(const TaskTable& part, const PeriodSlopes& slopes) const;

 private:
  // An edge of the events for one of the durations of its task. Times are sums of entries of a
  // table.
  struct Way {
    std::uint32_t from = 0;  // nodes
    std::uint32_t to = 0;
    std::uint32_t rounds = 0;
    Wait wait = Wait::need;
    std::size_t other = 0;  // 0: by the duration; else by that entry of the others, from 1
    bool started = false;   // not before the start of what it waits for: no time at all
  };
  struct Line {
    double time = 0;   // of the cycle, per round, at factor 1
    double slope = 0;  // of the same
    double error = 0;  // rounding, at any factor
  };
  Time time_of(const Way& way, const TaskTable& table) const;
  EventGraph with_times(const TaskTable& table, std::vector<std::size_t>& ways) const;
  Line critical_line(const TaskTable& part, double factor) const;
  PeriodSlope most_of(const TaskTable& part, bool rest) const;
  double end_of(const TaskTable& part, double slope, double from) const;
  void find_tight();

  EventGraph events_;                // edges are taken from ways_
  std::vector<std::uint32_t> task_;  // by node
  TaskTable all_;
  std::vector<Way> ways_;
  std::vector<std::size_t> tight_;  // ways that critical cycles consist of
  Period period_;
};

}  // namespace stageline
