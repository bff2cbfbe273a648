// Finds by repeated simulation what ops take beside each other.
#include "sim/interference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr int most_passes = 64;
constexpr double close_enough = 1e-4;  // of a duration

struct Edge {
  Time at{};
  int change = 0;  // +1: an op starts, -1: it ends
};

// The time that an op of one machine has lost since the beginning if it has run all along.
class LostTime {
 public:
  LostTime(std::vector<Edge> edges, const std::vector<double>& slowdown) {
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
    int running = 0;
    double lost = 0;
    for (const Edge& edge : edges) {
      if (at_.empty() || edge.at != at_.back()) {
        if (!at_.empty()) {
          lost +=
              share_lost(running, slowdown) * static_cast<double>((edge.at - at_.back()).count());
        }
        at_.push_back(edge.at);
        lost_.push_back(lost);
      }
      running += edge.change;
    }
  }

  /// `at` is the start or the end of an op.
  double until(Time at) const {
    return lost_[as_size(std::lower_bound(at_.begin(), at_.end(), at) - at_.begin())];
  }

 private:
  static double share_lost(int running, const std::vector<double>& slowdown) {
    if (running < 2) return 0;
    return 1 - 1 / slowdown[std::min(as_size(running - 2), slowdown.size() - 1)];
  }

  std::vector<Time> at_;
  std::vector<double> lost_;  // picoseconds, by at_
};

class Together {
 public:
  Together(TaskGraph& graph, const Interference& interference)
      : graph_(graph), interference_(interference), alone_(graph.duration) {
    for (const int machine : interference.machine) machines_ = std::max(machines_, machine + 1);
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      if (graph.lanes[graph.lane[task]].kind == LaneKind::compute) compute_.push_back(task);
    }
  }

  TaskTimes simulated() {
    TaskTimes times = once();
    for (int pass = 0; pass < most_passes && lengthen(times); ++pass) times = once();
    return times;
  }

 private:
  int machine_of(std::uint32_t task) const {
    return nth(interference_.machine, graph_.lanes[graph_.lane[task]].device);
  }

  // Under fair sharing the graph's durations are then those of the run, beside communication.
  TaskTimes once() {
    if (!is_fair(graph_)) return simulate(graph_);
    beside_devices_ = graph_.duration;
    return run_fair(graph_);
  }

  // The durations of the last simulation, as if no communication slowed compute.
  const std::vector<Time>& beside_devices() const {
    return is_fair(graph_) ? beside_devices_ : graph_.duration;
  }

  // The share of its full rate that communication left to a task.
  double left_by_communication(std::uint32_t task) const {
    if (!is_fair(graph_) || graph_.duration[task] == Time{}) return 1;
    return static_cast<double>(beside_devices_[task].count()) /
           static_cast<double>(graph_.duration[task].count());
  }

  // Sets the durations that follow from these times. Whether one has changed by more than
  // `close_enough`; if none has, the durations stay those of the times.
  bool lengthen(const TaskTimes& times) {
    std::vector<std::vector<Edge>> edges(as_size(machines_));
    for (const std::uint32_t task : compute_) {
      std::vector<Edge>& of_machine = nth(edges, machine_of(task));
      of_machine.push_back({start_of(graph_, times, task), +1});
      of_machine.push_back({end_of(graph_, times, task), -1});
    }
    std::vector<LostTime> lost;
    lost.reserve(edges.size());
    for (std::vector<Edge>& of_machine : edges) {
      lost.emplace_back(std::move(of_machine), interference_.slowdown);
    }
    std::vector<Time> next = beside_devices();
    bool moved = false;
    for (const std::uint32_t task : compute_) {
      const LostTime& here = nth(lost, machine_of(task));
      const double more =
          here.until(end_of(graph_, times, task)) - here.until(start_of(graph_, times, task));
      const Time now = beside_devices()[task];
      next[task] = alone_[task] + Time{std::llround(more * left_by_communication(task))};
      const auto change = static_cast<double>(std::abs((next[task] - now).count()));
      moved = moved || change > close_enough * static_cast<double>(now.count());
    }
    if (moved) graph_.duration = std::move(next);
    return moved;
  }

  TaskGraph& graph_;
  const Interference& interference_;
  std::vector<Time> alone_;
  std::vector<Time> beside_devices_;    // under fair sharing
  std::vector<std::uint32_t> compute_;  // tasks
  int machines_ = 0;
};

}  // namespace

TaskTimes simulate_together(TaskGraph& graph, const Interference& interference) {
  const std::vector<double>& slowdown = interference.slowdown;
  const bool slows = std::any_of(slowdown.begin(), slowdown.end(), [](double s) { return s > 1; });
  if (slows) return Together(graph, interference).simulated();
  return is_fair(graph) ? run_fair(graph) : simulate(graph);
}

}  // namespace stageline
