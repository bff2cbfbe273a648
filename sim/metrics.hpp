// What a timeline says: who was busy, who waited and for what, and which chain of ops set the pace.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/program.hpp"
#include "sim/task_graph.hpp"
#include "sim/timeline.hpp"

namespace stageline {

/// Why a compute lane stood still.
enum class IdleKind : std::uint8_t {
  fill,       // waiting for the pipeline to fill: before a step's first backward on this device
  drain,      // for it to empty: after a step's last forward on this device
  imbalance,  // in between, for a slower stage
  link,       // for bytes on a link, wherever it was
  other,      // for gradient reduction, offload or prefetch
};
inline constexpr int idle_kinds = 5;
std::string_view name(IdleKind kind);

struct IdleInterval {
  int device = 0;
  Time start{};
  Time end{};
  IdleKind kind = IdleKind::fill;
  Op before{};  // the op that starts when the wait is over; meaningless for the final drain
};

struct DeviceMetrics {
  Time busy{};                             // compute lane
  Time idle{};                             // makespan - busy
  Time span_idle{};                        // idle between this device's first start and last end
  std::array<Time, idle_kinds> idle_by{};  // sums to idle
};

/// Idle intervals in time order by device; an interval with two causes is split in two.
struct Metrics {
  Time makespan{};
  std::vector<DeviceMetrics> device;
  std::vector<IdleInterval> idle;
};
Metrics metrics_of(const Program& program, const TaskGraph& graph, const TaskTimes& times);

/// Completion of each step: the end of the last task that belongs to it.
std::vector<Time> step_ends(const Program& program, const TaskGraph& graph, const TaskTimes& times);

/// One link of the critical path, in order of time: a task, or waiting for a shared link, or
/// latency.
struct PathPiece {
  enum class Kind : std::uint8_t { task, queue, latency } kind = Kind::task;
  Op op{};
  Time start{};
  Time end{};
};

/// A chain without gaps from time 0 to the makespan. Ties: the need before the lane, then the
/// smaller task number.
std::vector<PathPiece> critical_path(const TaskGraph& graph, const TaskTimes& times);

/// "F" 3 ms, "B" ..., "link", "queue", "latency": in order of first appearance of the kind enum.
struct PathShare {
  std::string kind;
  Time time{};
};
std::vector<PathShare> shares(const std::vector<PathPiece>& path);

}  // namespace stageline
