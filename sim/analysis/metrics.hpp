// How busy each device is, what its idle time is due to, and which chain of ops sets the pace.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/program.hpp"
#include "sim/task_graph.hpp"
#include "sim/timeline.hpp"

namespace stageline {

/// Why a compute lane is idle.
enum class IdleKind : std::uint8_t {
  fill,         // the pipeline fills: up to a step's first backward on this device
  drain,        // the pipeline empties: after a step's last forward on this device
  dependency,   // in between: it has to wait in this order and placement in any case
  imbalance,    // it would not wait if all stages took equally long
  link,         // it waits for messages: the wire, latencies, queues on shared links
  collectives,  // it waits for reductions between replicas
  optimizer,    // it waits for updates
  copies,       // it waits for offload and prefetch
  unused,       // the device has no work at all
};
inline constexpr int idle_kinds = 9;
std::string_view name(IdleKind kind);

struct IdleInterval {
  int device = 0;
  Time start{};
  Time end{};
  IdleKind kind = IdleKind::fill;
  Op before{};  // the op that starts at `end`; meaningless in the final drain
};

struct DeviceMetrics {
  Time busy{};                             // compute lane
  Time idle{};                             // makespan - busy
  Time span_idle{};                        // idle between this device's first start and last end
  std::array<Time, idle_kinds> idle_by{};  // sums to idle
};

/// Idle intervals in order of time by device. Causes are found by running the same order without
/// messages, then also without reductions, copies and updates, then with equal stages if that is
/// faster or leaves the busiest device less work. The idle time that a run saves is charged to the
/// cause that it leaves out, unless later idle time in the same part of the step (fill, between,
/// drain) makes up for it. The rest is fill, drain or dependency, and never more than in the last
/// of these runs. An interval with several causes is split: first the cost of the order itself,
/// links last. A device with forwards only, or backwards only, fills up to its first op, or to the
/// first that waits for a backward, and drains after its last. Programs without a flush have one
/// fill and one drain. Stages are equal when every kind of op takes equally long on all of them, r
/// times as long on r replicas. O(tasks + needs): one sweep, and one more for each cause that takes
/// time.
struct Metrics {
  Time makespan{};
  Time makespan_free_links{};  // of the same order, if links took no time
  std::vector<DeviceMetrics> device;
  std::vector<IdleInterval> idle;
};
Metrics metrics_of(const Program& program, const TaskGraph& graph, const TaskTimes& times);

/// By micro-batch, when it and all earlier ones are done: the last end of their tasks. An update
/// belongs to the last micro-batch that it uses. Never decreases.
std::vector<Time> microbatch_ends(const Program& program, const TaskGraph& graph,
                                  const TaskTimes& times);

/// By step, when it and all earlier ones are done.
std::vector<Time> step_ends(const Program& program, const TaskGraph& graph, const TaskTimes& times);

/// One piece of the critical path: a task, a wait for a shared link, or latency.
struct PathPiece {
  enum class Kind : std::uint8_t { task, queue, latency } kind = Kind::task;
  Op op{};
  Time start{};
  Time end{};
};

/// A chain without gaps from time 0 to the makespan, in order of time. Ties: the need before the
/// predecessor in the lane, then the smaller task number.
std::vector<PathPiece> critical_path(const TaskGraph& graph, const TaskTimes& times);

/// Time on the path by kind of piece: "F", "B", ..., "link", "queue", "latency", in this order.
struct PathShare {
  std::string kind;
  Time time{};
};
std::vector<PathShare> shares(const std::vector<PathPiece>& path);

}  // namespace stageline
