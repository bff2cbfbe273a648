// Two engines over one task graph (the third is in sim/fair/). sweep: every task has a higher
// number than what it needs, so one pass in number order finds all times. run: the same rule, but
// tasks whose path crosses a shared link must be served in order of time, so lanes are walked as
// far as possible and pending requests wait in a heap, one per lane.
#include "sim/engine.hpp"

#include <algorithm>

#include "sim/base/pages.hpp"
#include "sim/base/request_queue.hpp"

namespace stageline {
namespace {

constexpr Time unknown{-1};
constexpr std::uint32_t none = 0xffffffff;

template <bool head_starts>
class Runner {
 public:
  explicit Runner(const TaskGraph& graph)
      : graph_(graph),
        head_(graph.lane_begin.begin(), graph.lane_begin.end() - 1),
        next_waiter_(graph.lanes.size(), none),
        lane_free_(graph.lanes.size()),
        resource_free_(graph.resources.size()) {
    reserve_pages(waiter_, graph.tasks());
    waiter_.assign(graph.tasks(), none);
    reserve_pages(times_.available, graph.tasks());
    times_.available.assign(graph.tasks(), unknown);
  }

  TaskTimes run() {
    for (std::uint32_t lane = static_cast<std::uint32_t>(graph_.lanes.size()); lane-- > 0;) {
      ready_lanes_.push_back(lane);
    }
    while (true) {
      while (!ready_lanes_.empty()) {
        const std::uint32_t lane = ready_lanes_.back();
        ready_lanes_.pop_back();
        walk(lane);
      }
      if (requests_.empty()) return std::move(times_);
      grant(requests_.pop());
    }
  }

 private:
  // Runs tasks of the lane until one must wait: for a need, or for a shared resource.
  void walk(std::uint32_t lane) {
    while (head_[lane] != graph_.lane_begin[lane + 1]) {
      const std::uint32_t* const tasks = &graph_.lane_task[head_[lane]];
      const std::uint32_t left = graph_.lane_begin[lane + 1] - head_[lane];
      const std::uint32_t task = tasks[0];
      // Hundreds of lanes are at as many places of the arrays, more streams than the processor
      // prefetches by itself. (g++ drops a function of prefetches alone, so they are inline.)
      __builtin_prefetch(tasks + std::min(left, 32U));
      if (left > 4) {
        __builtin_prefetch(&graph_.need_begin[tasks[4]]);
        __builtin_prefetch(&graph_.path_of[tasks[4]]);
        __builtin_prefetch(&graph_.duration[tasks[4]]);
        __builtin_prefetch(&times_.available[tasks[4]]);
        __builtin_prefetch(&waiter_[tasks[4]]);
        __builtin_prefetch(graph_.need.data() + graph_.need_begin[tasks[2]]);
      }
      Time ready = lane_free_[lane];
      for (std::uint32_t i = graph_.need_begin[task]; i != graph_.need_begin[task + 1]; ++i) {
        const std::uint32_t needed = graph_.need[i];
        const Time available = times_.available[needed];
        if (available == unknown) {
          next_waiter_[lane] = waiter_[needed];
          waiter_[needed] = lane;
          return;
        }
        ready = std::max(ready, head_starts ? ahead(task, needed) : available);
      }
      if (!graph_.paths[graph_.path_of[task]].resources.empty()) {
        requests_.push({ready, task});
        return;
      }
      finish(task, lane, ready);
    }
  }

  // When the task may start as far as this need goes.
  Time ahead(std::uint32_t task, std::uint32_t needed) const {
    return ready_ahead(times_.available[needed], start_of(graph_, times_, needed),
                       graph_.paths[graph_.path_of[task]].head_start);
  }

  void finish(std::uint32_t task, std::uint32_t lane, Time start) {
    const Time end = start + graph_.duration[task];
    lane_free_[lane] = end;
    times_.available[task] = end + graph_.paths[graph_.path_of[task]].lag;
    ++head_[lane];
    for (std::uint32_t waiting = waiter_[task]; waiting != none; waiting = next_waiter_[waiting]) {
      ready_lanes_.push_back(waiting);
    }
  }

  void grant(const ResourceRequest& request) {
    const Path& path = graph_.paths[graph_.path_of[request.task]];
    Time start = request.asked;
    for (const std::uint32_t resource : path.resources) {
      start = std::max(start, resource_free_[resource]);
    }
    for (const std::uint32_t resource : path.resources) {
      resource_free_[resource] = start + graph_.duration[request.task];
    }
    const std::uint32_t lane = graph_.lane[request.task];
    finish(request.task, lane, start);
    ready_lanes_.push_back(lane);
  }

  const TaskGraph& graph_;
  std::vector<std::uint32_t> head_;         // by lane, into lane_task
  std::vector<std::uint32_t> next_waiter_;  // by lane: the next lane that waits for the same task
  std::vector<Time> lane_free_;             // by lane
  std::vector<Time> resource_free_;         // by resource
  std::vector<std::uint32_t> waiter_;       // by task: the first lane that waits for it
  std::vector<std::uint32_t> ready_lanes_;
  RequestQueue requests_;
  TaskTimes times_;
};

}  // namespace

namespace {

// By path, in place of the graph's.
struct PathTimes {
  std::vector<Time> lag;
  std::vector<Time> head_start;  // empty: none
};

PathTimes path_times(const TaskGraph& graph) {
  PathTimes times;
  for (const Path& path : graph.paths) times.lag.push_back(path.lag);
  if (!has_head_starts(graph)) return times;
  for (const Path& path : graph.paths) times.head_start.push_back(path.head_start);
  return times;
}

template <bool head_starts, class Duration>
TaskTimes sweep_with(const TaskGraph& graph, const PathTimes& path, Duration duration) {
  TaskTimes times;
  reserve_pages(times.available, graph.tasks());
  times.available.resize(graph.tasks());
  std::vector<Time> lane_free(graph.lanes.size());
  Time* const available = times.available.data();
  const std::uint32_t* const need = graph.need.data();
  std::uint32_t i = 0;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    Time& free = lane_free[graph.lane[task]];
    Time start = free;
    for (const std::uint32_t end = graph.need_begin[task + 1]; i != end; ++i) {
      const Time at = available[need[i]];
      if constexpr (head_starts) {
        const Time started = at - path.lag[graph.path_of[need[i]]] - duration(need[i]);
        start = std::max(start, ready_ahead(at, started, path.head_start[graph.path_of[task]]));
      } else {
        start = std::max(start, at);
      }
    }
    free = start + duration(task);
    available[task] = free + path.lag[graph.path_of[task]];
  }
  return times;
}

template <class Duration>
TaskTimes sweep_with(const TaskGraph& graph, const PathTimes& path, Duration duration) {
  const bool head_starts = std::any_of(path.head_start.begin(), path.head_start.end(),
                                       [](Time head_start) { return head_start > Time{}; });
  return head_starts ? sweep_with<true>(graph, path, duration)
                     : sweep_with<false>(graph, path, duration);
}

}  // namespace

TaskTimes sweep(const TaskGraph& graph) {
  return sweep_with(graph, path_times(graph),
                    [&](std::uint32_t task) { return graph.duration[task]; });
}

TaskTimes sweep(const TaskGraph& graph, const std::vector<Time>& duration,
                const std::vector<Time>& lag, const std::vector<Time>& head_start) {
  return sweep_with(graph, {lag, head_start}, [&](std::uint32_t task) { return duration[task]; });
}

TaskTimes sweep_with_free_links(const TaskGraph& graph) {
  std::vector<bool> sends;
  for (const Lane& lane : graph.lanes) sends.push_back(is_communication(lane.kind));
  // A path is used by one lane only, so its lag is free if that lane's tasks are.
  PathTimes path = path_times(graph);
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    if (!sends[graph.lane[task]]) continue;
    path.lag[graph.path_of[task]] = Time{};
    if (!path.head_start.empty()) path.head_start[graph.path_of[task]] = Time{};
  }
  return sweep_with(graph, path, [&](std::uint32_t task) {
    return sends[graph.lane[task]] ? Time{} : graph.duration[task];
  });
}

TaskTimes run(const TaskGraph& graph) {
  return has_head_starts(graph) ? Runner<true>(graph).run() : Runner<false>(graph).run();
}

TaskTimes simulate(const TaskGraph& graph) {
  if (is_fair(graph)) {
    std::vector<Time> took;
    return run_fair(graph, took);
  }
  return shares_resources(graph) ? run(graph) : sweep(graph);
}

std::vector<Time> slack(const TaskGraph& graph, const TaskTimes& times) {
  // The latest moment at which each task's result may become available: backwards, so that all its
  // readers come first.
  std::vector<Time> latest(graph.tasks(), makespan(times));
  std::vector<Time> lane_latest(graph.lanes.size(), Time::max());  // start of the lane's next task
  // With head starts: the latest start that readers allow, which wait for the start, too.
  const bool any_ahead = has_head_starts(graph);
  std::vector<Time> latest_start(any_ahead ? graph.tasks() : 0, Time::max());
  for (std::uint32_t task = graph.tasks(); task-- > 0;) {
    const Path& path = graph.paths[graph.path_of[task]];
    Time& next = lane_latest[graph.lane[task]];
    if (next != Time::max()) latest[task] = std::min(latest[task], next + path.lag);
    Time start = latest[task] - path.lag - graph.duration[task];
    if (any_ahead) start = std::min(start, latest_start[task]);
    next = start;
    for (std::uint32_t i = graph.need_begin[task]; i != graph.need_begin[task + 1]; ++i) {
      const std::uint32_t need = graph.need[i];
      latest[need] = std::min(latest[need], start + path.head_start);
      if (any_ahead) latest_start[need] = std::min(latest_start[need], start);
    }
  }
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    // A need that was slowed after its reader had started may end after its latest moment.
    latest[task] = any_ahead ? std::max(Time{}, latest[task] - times.available[task])
                             : latest[task] - times.available[task];
  }
  return latest;
}

Time makespan(const TaskTimes& times) {
  Time last{};
  for (const Time available : times.available) last = std::max(last, available);
  return last;
}

}  // namespace stageline
