// Appends tasks to a task graph. Its arrays grow by blocks that fit into the nearest cache, since a
// check for each element of each array takes longer than writing it.
#pragma once

#include <cstdint>
#include <utility>

#include "sim/base/pages.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

class TaskWriter {
 public:
  /// Room for that many tasks; more are possible. With `partners`, of overlapped pairs.
  void reserve(std::size_t tasks, bool partners) {
    partners_ = partners;
    reserve_pages(graph.op, tasks + block);
    reserve_pages(graph.lane, tasks + block);
    reserve_pages(graph.path_of, tasks + block);
    reserve_pages(graph.duration, tasks + block);
    reserve_pages(graph.need_begin, tasks + block + 1);
    reserve_pages(graph.need, tasks + tasks / 2 + block);
    if (partners_) reserve_pages(graph.partner, tasks + block);
    graph.need_begin.assign(1, 0);
  }

  std::uint32_t tasks() const { return tasks_; }
  std::uint32_t needs() const { return needs_; }

  /// Adds a need to the task that is added next.
  void need(std::uint32_t task) {
    if (needs_ == graph.need.size()) graph.need.resize(needs_ + block);
    graph.need[needs_++] = task;
  }
  void drop_needs_from(std::uint32_t first) { needs_ = first; }

  void add(Op op, std::uint32_t lane, std::uint16_t path, Time duration, Op partner = {}) {
    if (tasks_ == graph.op.size()) resize(tasks_ + block);
    graph.op[tasks_] = op;
    graph.lane[tasks_] = static_cast<std::uint16_t>(lane);
    graph.path_of[tasks_] = path;
    graph.duration[tasks_] = duration;
    if (partners_) graph.partner[tasks_] = partner;
    busy_ += duration.count();
    graph.need_begin[++tasks_] = needs_;
  }

  /// The sum of all durations, ps.
  __extension__ using Wide = __int128;
  Wide busy() const { return busy_; }

  /// Cuts the arrays to what was added.
  void finish() {
    resize(tasks_);
    graph.need.resize(needs_);
  }

  TaskGraph graph;

 private:
  static constexpr std::uint32_t block = 512;

  void resize(std::uint32_t tasks) {
    graph.op.resize(tasks);
    graph.lane.resize(tasks);
    graph.path_of.resize(tasks);
    graph.duration.resize(tasks);
    graph.need_begin.resize(tasks + std::size_t{1});
    if (partners_) graph.partner.resize(tasks);
  }

  std::uint32_t tasks_ = 0;
  std::uint32_t needs_ = 0;
  bool partners_ = false;
  Wide busy_ = 0;
};

}  // namespace stageline
