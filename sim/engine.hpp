// When each task runs: three functions over one TaskGraph, and `simulate`, which chooses one.
//
//   sweep      no shared resources
//   run        shared resources, first come, first served
//   run_fair   shared resources at max-min fair rates, and compute slowed by communication
//
// A caller that wants to know when tasks start calls simulate_together() of sim/interference.hpp,
// which leaves the durations of the run in the graph, whichever engine it is. One that reads ends
// only, or whose costs are never shared fairly, may call simulate().
#pragma once

#include <algorithm>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/task_graph.hpp"
#include "sim/timeline.hpp"

namespace stageline {

/// By task, the moment its result can be used: its end, plus the lag of its path.
struct TaskTimes {
  std::vector<Time> available;
};

inline Time end_of(const TaskGraph& graph, const TaskTimes& times, std::uint32_t task) {
  return times.available[task] - graph.paths[graph.path_of[task]].lag;
}
inline Time start_of(const TaskGraph& graph, const TaskTimes& times, std::uint32_t task) {
  return end_of(graph, times, task) - graph.duration[task];
}

/// Whether the graph's transfers share resources at fair rates (Costs::sharing).
inline bool is_fair(const TaskGraph& graph) { return !graph.bytes.empty(); }

/// When a task may start, as far as one of its needs goes, in all engines: Path::head_start before
/// the need's result is there, but not before the need starts. (Nor before its own lane is free.)
/// A head start is at most the duration of its task, so no task ends before what it needs.
inline Time ready_ahead(Time available, Time started, Time head_start) {
  return std::max(available - head_start, started);
}
inline bool has_head_starts(const TaskGraph& graph) {
  return std::any_of(graph.paths.begin(), graph.paths.end(),
                     [](const Path& path) { return path.head_start > Time{}; });
}

/// One topological pass; ignores shared resources. O(tasks + needs).
TaskTimes sweep(const TaskGraph& graph);

/// The same with other durations (by task), lags and head starts (by path), for what-ifs.
TaskTimes sweep(const TaskGraph& graph, const std::vector<Time>& duration,
                const std::vector<Time>& lag, const std::vector<Time>& head_start);

/// The same as if every message and reduction took no time: the cost of the order alone.
TaskTimes sweep_with_free_links(const TaskGraph& graph);

/// The same as sweep, with shared resources. A task asks for its resources when its lane is free
/// and its needs are met; requests are served by (time of the request, task number), each as soon
/// as all its resources are free of earlier ones. A task without shared resources never waits for
/// another's request.
TaskTimes run(const TaskGraph& graph);

/// As sweep, with shared resources at max-min fair rates (sim/fair/max_min.hpp), for a graph with
/// bytes and capacities. graph.duration holds what tasks take alone; it is set to what they took,
/// exactly end - start. By task:
///
///   * A flow has bytes, and a path with resources of limited capacity. It waits for no other: it
///     spends Path::setup, then moves its bytes at its fair rate, at most Path::bandwidth. It ends
///     in the first whole picosecond by which they have moved. At its own bandwidth from first to
///     last byte it takes its duration, to the picosecond.
///   * A transfer without bytes, or whose path has no such resources, takes its duration (which
///     includes its setup), as in run().
///   * Compute on one of Path::devices runs at 1 / (1 + Σ γ) while flows move bytes there, not
///     during their setup. Σ has a term for each tier that moves any, however many flows it has.
///     What is never slowed takes its duration.
///   * A flow moves its bytes at its rate / (1 + transfer_slowdown of its tier) while any of
///     Path::devices computes; no other flow gains by that. Where it has no resources, what its
///     duration leaves behind the setup passes at that pace.
///
/// All events of one moment happen before new rates are found. A flow or op whose rate does not
/// change keeps its end. A start ahead of needs (Path::head_start) follows from the planned ends of
/// the needs. It is planned once all needs have started (during a flow's setup, as if it were
/// alone), and again at each change of those ends. A need that is slowed after that start has given
/// a longer head start. Without slowdowns, and with capacities that never bind, the times are those
/// of sweep. The work is O(log lanes) an event and, for each change of a flow, the component of
/// flows and resources that it reaches.
TaskTimes run_fair(TaskGraph& graph);

/// The same; `took`: what each task took, instead of graph.duration.
TaskTimes run_fair(const TaskGraph& graph, std::vector<Time>& took);

/// `run_fair` where the graph is fair, else `run` where resources are shared, else `sweep`. In a
/// fair graph only the ends are right: start_of() reads what a task takes alone.
TaskTimes simulate(const TaskGraph& graph);

/// By task, how much later it could end without delaying the makespan, by the dependencies alone.
std::vector<Time> slack(const TaskGraph& graph, const TaskTimes& times);

/// Last end over all tasks, lag included; 0 for an empty graph.
Time makespan(const TaskTimes& times);

/// The times as spans by lane. A message gives a span in the sender's send lane and one, a latency
/// later, in the receiver's receive lane.
Timeline timeline_of(const Program& program, const TaskGraph& graph, const TaskTimes& times);

}  // namespace stageline
