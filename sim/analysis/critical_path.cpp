// The critical path of a run, walked back from its end.
#include <algorithm>
#include <string>

#include "sim/analysis/metrics.hpp"

namespace stageline {

std::vector<PathPiece> critical_path(const TaskGraph& graph, const TaskTimes& times) {
  std::vector<PathPiece> path;
  if (graph.tasks() == 0) return path;
  std::vector<std::uint32_t> before(graph.tasks(), graph.tasks());  // in the same lane
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    for (std::uint32_t i = graph.lane_begin[lane] + 1; i < graph.lane_begin[lane + 1]; ++i) {
      before[graph.lane_task[i]] = graph.lane_task[i - 1];
    }
  }
  std::uint32_t task = 0;
  for (std::uint32_t t = 1; t < graph.tasks(); ++t) {
    if (times.available[t] > times.available[task]) task = t;
  }
  Time until = times.available[task];  // where the rest of the path begins
  const auto add = [&](PathPiece::Kind kind, Op op, Time start, Time end) {
    end = std::min(end, until);
    if (end > start) path.push_back({kind, op, start, end});
  };
  bool awaited = true;  // the next task needs its result, and not only its lane
  while (true) {
    const Time end = end_of(graph, times, task);
    const Time start = end - graph.duration[task];
    const Time head_start = graph.paths[graph.path_of[task]].head_start;
    const Op op = graph.op[task];
    if (awaited) add(PathPiece::Kind::latency, op, end, times.available[task]);
    // The cause of its start: the last need to be met, else the predecessor in its lane.
    std::uint32_t cause = graph.tasks();
    Time ready{};
    for (std::uint32_t i = graph.need_begin[task]; i != graph.need_begin[task + 1]; ++i) {
      const std::uint32_t need = graph.need[i];
      const Time at = ready_ahead(times.available[need], start_of(graph, times, need), head_start);
      if (cause == graph.tasks() || at > ready || (at == ready && need < cause)) {
        cause = need;
        ready = at;
      }
    }
    awaited = true;
    if (before[task] != graph.tasks()) {
      const Time free = end_of(graph, times, before[task]);
      if (cause == graph.tasks() || free > ready) {
        cause = before[task];
        ready = free;
        awaited = false;
      }
    }
    // A task that starts ahead of its need is on the path from the end of that need.
    const bool ahead = awaited && cause != graph.tasks() && head_start > Time{};
    if (ahead) ready = times.available[cause];
    const Time from = std::max(start, std::min(ready, end));
    // If messages block, the RECV is a task of its own: the latency.
    const bool arrives = lane_of(op.kind) == LaneKind::receive;
    add(arrives ? PathPiece::Kind::latency : PathPiece::Kind::task, op, from, end);
    add(PathPiece::Kind::queue, op, ready, start);
    if (cause == graph.tasks()) break;
    until = from;
    task = cause;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<PathShare> shares(const std::vector<PathPiece>& path) {
  const auto kind_of = [](const PathPiece& piece) -> std::string {
    switch (piece.kind) {
      case PathPiece::Kind::queue:
        return "queue";
      case PathPiece::Kind::latency:
        return "latency";
      case PathPiece::Kind::task:
        break;
    }
    return is_send(piece.op.kind) ? "link" : std::string(symbol(piece.op.kind));
  };
  std::vector<PathShare> result;
  for (const char* const kind : {"F", "I", "W", "B", "R", "U", "REDUCE_GRAD", "OFFLOAD", "PREFETCH",
                                 "link", "queue", "latency"}) {
    Time sum{};
    for (const PathPiece& piece : path) {
      if (kind_of(piece) == kind) sum += piece.end - piece.start;
    }
    if (sum > Time{}) result.push_back({kind, sum});
  }
  return result;
}

}  // namespace stageline
