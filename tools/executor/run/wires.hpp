// The links of a cluster, imitated in real time: a message takes the time that the simulator gives
// it on those links, counted from the moment that it could really leave. No thread waits for it and
// no processor works for it, as a network card would have it. What is imitated is exact: askers for
// a shared link are served in order of time, by whoever looks next (sim/engine.hpp's `run` says
// how).
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "sim/task_graph.hpp"
#include "sim/units.hpp"

namespace stageline {

/// By task, when what it made can be used, in time since the run began: what all workers look at.
class Board {
 public:
  static constexpr std::int64_t unknown = -1;
  explicit Board(std::uint32_t tasks) : available_(tasks) { clear(); }
  void clear() {
    for (auto& one : available_) one.store(unknown, std::memory_order_relaxed);
  }
  void publish(std::uint32_t task, Time at) {
    available_[task].store(at.count(), std::memory_order_release);
  }
  bool known(std::uint32_t task) const { return get(task) != unknown; }
  Time at(std::uint32_t task) const { return Time{get(task)}; }
  bool is_there(std::uint32_t task, Time now) const {
    const std::int64_t at = get(task);
    return at != unknown && at <= now.count();
  }

 private:
  std::int64_t get(std::uint32_t task) const {
    return available_[task].load(std::memory_order_acquire);
  }
  std::vector<std::atomic<std::int64_t>> available_;
};

/// The send lanes of a task graph.
class Wires {
 public:
  Wires(const TaskGraph& graph, Board& board);
  void restart();
  /// Serves all who have asked until now. Any thread may call it at any time.
  void poll(Time now);
  /// Whether all messages have left.
  bool idle();

 private:
  const TaskGraph& graph_;
  Board& board_;
  std::mutex mutex_;
  std::vector<std::uint32_t> lanes_;  // into graph.lanes
  std::vector<std::uint32_t> head_;   // by lane of these, into graph.lane_task
  std::vector<Time> lane_free_;       // by lane of these
  std::vector<Time> resource_free_;   // by resource
};

}  // namespace stageline
