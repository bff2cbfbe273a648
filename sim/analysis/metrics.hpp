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
  fill,         // for the pipeline to fill: up to a step's first backward on this device
  drain,        // for it to empty: behind a step's last forward on this device
  dependency,   // in between, for what the order or the placement makes it wait for in any case
  imbalance,    // it would not have waited if all stages took equally long
  link,         // for messages: the wire, latencies, queues on shared links
  collectives,  // for reductions between replicas
  optimizer,    // for updates
  copies,       // for offload and prefetch
  unused,       // the device has no work at all
};
inline constexpr int idle_kinds = 9;
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

/// Idle intervals in time order by device. Why: by running the same order without messages, then
/// without reductions, copies and updates too, then with equal stages, if that is faster or leaves
/// the busiest device less work. What a device waits less for it is the cause's, where later
/// waiting of the same part of the step (fill, between, drain) does not make up for it. The rest is
/// fill, drain or dependency, never more than in the last of these runs. An interval of several
/// causes is split: first what the order costs in any case, links last. A device that does forwards
/// alone, or backwards alone, fills up to its first op, or the first that waits for a backward, and
/// drains behind its last. Programs without a flush have one fill and one drain. Stages are equal
/// when every kind of op takes equally long on all, r times as long on r replicas. O(tasks +
/// needs), one sweep and one more for each cause that takes time.
struct Metrics {
  Time makespan{};
  Time makespan_free_links{};  // of the same order if links took no time
  std::vector<DeviceMetrics> device;
  std::vector<IdleInterval> idle;
};
Metrics metrics_of(const Program& program, const TaskGraph& graph, const TaskTimes& times);

/// By micro-batch, when it and all before it were done: the last end of their tasks, updates
/// counted with the last micro-batch that goes into them. Never falls.
std::vector<Time> microbatch_ends(const Program& program, const TaskGraph& graph,
                                  const TaskTimes& times);

/// The same by step.
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
