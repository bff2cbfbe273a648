// Why the devices of a measured run are idle: the causes of a simulated one, and what they leave.
#pragma once

#include <map>
#include <vector>

#include "sim/analysis/metrics.hpp"
#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

/// [start, end).
struct TimeStretch {
  Time start{};
  Time end{};
};

struct MeasuredIdle {
  Metrics metrics;  // idle_by and `other` together sum to idle; idle intervals leave `other` out
  /// By device: idle although the run's own ops and messages would have let it start: launching,
  /// data loading, collectives, and all else that is no op of the program.
  std::vector<Time> other;
  /// By device: the time in which it was free and had its inputs before an op began. What of it
  /// delays the run is in `other` of all devices. Only measured_idle() fills it in.
  std::vector<Time> late;
  /// By device: when that was, in order. Only measured_idle() fills it in.
  std::vector<std::vector<TimeStretch>> late_stretches;
};

/// As metrics_of, for tasks that ran at `times` with the durations and lags of `graph`. The first
/// cause is `other`: idle time that disappears if every task starts as soon as it can.
MeasuredIdle measured_metrics_of(const Program& program, const TaskGraph& graph,
                                 const TaskTimes& times);

/// The same for a program that ran as the timeline shows. `transit`: by the op that reads it (F, I
/// or B, not overlapped), the time of a message from when both its ends were there until it
/// arrived; for a message without an entry it counts as `other`. Throws Deadlock and ProgramError
/// as compile() does, and UsageError for more than 65 000 messages.
MeasuredIdle measured_idle(const Program& program, const Timeline& timeline,
                           const std::map<Op, Time>& transit);

}  // namespace stageline
