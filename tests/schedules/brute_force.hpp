// The rule of run() in sim/engine.hpp once more, for tests only.
#pragma once

#include <algorithm>

#include "sim/engine.hpp"

namespace stageline::test {

/// The rule of run() over a task graph, word for word: whatever shares nothing is done as soon as
/// its lane's previous task and its needs are known, a head start before these are there but not
/// before they start; then the request with the smallest (time of
/// asking, task number) is granted, from when all its resources are free; and again. Quadratic.
inline TaskTimes brute_force(const TaskGraph& graph) {
  constexpr Time unknown{-1};
  TaskTimes times;
  times.available.assign(graph.tasks(), unknown);
  std::vector<Time> resource_free(graph.resources.size());
  std::vector<std::uint32_t> before(graph.tasks(), graph.tasks());
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    for (std::uint32_t i = graph.lane_begin[lane] + 1; i < graph.lane_begin[lane + 1]; ++i) {
      before[graph.lane_task[i]] = graph.lane_task[i - 1];
    }
  }
  // The moment a task asks, or unknown.
  const auto asks_at = [&](std::uint32_t task) {
    Time at{};
    if (before[task] != graph.tasks()) {
      if (times.available[before[task]] == unknown) return unknown;
      at = end_of(graph, times, before[task]);
    }
    for (std::uint32_t i = graph.need_begin[task]; i < graph.need_begin[task + 1]; ++i) {
      if (times.available[graph.need[i]] == unknown) return unknown;
      const Time started = start_of(graph, times, graph.need[i]);
      const Time head_start = graph.paths[graph.path_of[task]].head_start;
      at = std::max({at, times.available[graph.need[i]] - head_start, started});
    }
    return at;
  };
  while (true) {
    std::uint32_t next = graph.tasks();
    Time asked{};
    bool free_one = false;
    for (std::uint32_t task = 0; task < graph.tasks() && !free_one; ++task) {
      if (times.available[task] != unknown) continue;
      const Time at = asks_at(task);
      if (at == unknown) continue;
      free_one = graph.paths[graph.path_of[task]].resources.empty();
      if (!free_one && next != graph.tasks() && at >= asked) continue;
      next = task;
      asked = at;
    }
    if (next == graph.tasks()) return times;
    const Path& path = graph.paths[graph.path_of[next]];
    Time start = asked;
    for (const std::uint32_t r : path.resources) start = std::max(start, resource_free[r]);
    const Time end = start + graph.duration[next];
    for (const std::uint32_t r : path.resources) resource_free[r] = end;
    times.available[next] = end + path.lag;
  }
}

}  // namespace stageline::test
