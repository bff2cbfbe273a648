// When each task runs: two functions over one TaskGraph.
#pragma once

#include <vector>

#include "sim/task_graph.hpp"
#include "sim/timeline.hpp"
#include "sim/units.hpp"

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

/// One topological pass; ignores shared resources. O(tasks + needs).
TaskTimes sweep(const TaskGraph& graph);

/// The same with other durations (by task) and other lags (by path), for what-ifs.
TaskTimes sweep(const TaskGraph& graph, const std::vector<Time>& duration,
                const std::vector<Time>& lag);

/// The same as if every message and reduction took no time: the cost of the order alone.
TaskTimes sweep_with_free_links(const TaskGraph& graph);

/// The same as sweep, with shared resources. A task asks for its resources when its lane is free
/// and its needs are met; requests are served by (time of the request, task number), each as soon
/// as all its resources are free of earlier ones. A task without shared resources never waits for
/// another's request.
TaskTimes run(const TaskGraph& graph);

/// `run` where resources are shared, else `sweep`.
TaskTimes simulate(const TaskGraph& graph);

/// By task, how much later it could end without delaying the makespan, by the dependencies alone.
std::vector<Time> slack(const TaskGraph& graph, const TaskTimes& times);

/// Last end over all tasks, lag included; 0 for an empty graph.
Time makespan(const TaskTimes& times);

/// The times as spans by lane. A message gives a span in the sender's send lane and one, a latency
/// later, in the receiver's receive lane.
Timeline timeline_of(const Program& program, const TaskGraph& graph, const TaskTimes& times);

}  // namespace stageline
