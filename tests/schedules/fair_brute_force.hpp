// The rules of run_fair() in sim/engine.hpp once more, for tests only: no lists of what changed, no
// heap; every moment looks at every task, and all rates are found from nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/index.hpp"
#include "sim/engine.hpp"
#include "sim/fair/rated_work.hpp"

namespace stageline::test {

struct FairShare {
  double rate = 0;
  bool at_bound = false;
};

/// One flow of a network of links: its links, with the bytes across each for a byte of the flow.
struct FlowAcross {
  std::vector<std::uint32_t> links;
  std::vector<double> load;
  double bound = std::numeric_limits<double>::infinity();
  double weight = 1;
};

/// Progressive filling as in sim/fair/max_min.hpp, with all sums made anew in every round. Every
/// flow crosses a link.
inline std::vector<FairShare> fair_shares(const std::vector<double>& capacity,
                                          const std::vector<FlowAcross>& flows) {
  std::vector<FairShare> shares(flows.size());
  std::vector<bool> fixed(flows.size(), false);
  const auto above = [](double level, double other) { return level > other * (1 + 1e-12); };
  while (std::count(fixed.begin(), fixed.end(), false) > 0) {
    std::size_t lowest = capacity.size();
    double level = 0;
    for (std::size_t link = 0; link < capacity.size(); ++link) {
      double left = capacity[link];
      double weight = 0;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        for (std::size_t i = 0; i < flows[f].links.size(); ++i) {
          if (flows[f].links[i] != link) continue;
          if (fixed[f]) {
            left -= flows[f].load[i] * shares[f].rate;
          } else {
            weight += flows[f].load[i] * flows[f].weight;
          }
        }
      }
      if (weight == 0) continue;
      if (lowest != capacity.size() && !above(level, left / weight)) continue;
      lowest = link;
      level = left / weight;
    }
    std::size_t first = flows.size();  // by bound
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (fixed[f] || std::isinf(flows[f].bound)) continue;
      const bool less = first == flows.size() ||
                        flows[f].bound / flows[f].weight < flows[first].bound / flows[first].weight;
      if (less) first = f;
    }
    if (first != flows.size() && !above(flows[first].bound / flows[first].weight, level)) {
      shares[first] = {flows[first].bound, true};
      fixed[first] = true;
      continue;
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const std::vector<std::uint32_t>& links = flows[f].links;
      if (fixed[f] || std::find(links.begin(), links.end(), lowest) == links.end()) continue;
      shares[f] = {level * flows[f].weight, false};
      fixed[f] = true;
    }
  }
  return shares;
}

/// Quadratic and worse.
class FairBruteForce {
 public:
  explicit FairBruteForce(const TaskGraph& graph) : graph_(graph), tasks_(graph.tasks()) {
    for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
      for (std::uint32_t i = graph.lane_begin[lane] + 1; i < graph.lane_begin[lane + 1]; ++i) {
        tasks_[graph.lane_task[i]].before = static_cast<int>(graph.lane_task[i - 1]);
      }
    }
    for (const Bandwidth capacity : graph.capacity) {
      capacity_.push_back(static_cast<double>(capacity.bytes_per_second) * 1e-12);
    }
    simulate();
  }

  Time start(std::uint32_t task) const { return tasks_[task].start; }
  Time available(std::uint32_t task) const { return tasks_[task].end + path(task).lag; }
  Time took(std::uint32_t task) const { return tasks_[task].end - tasks_[task].start; }

 private:
  enum class State : std::uint8_t { waits, setup, moves, computes, done };
  struct Task {
    State state = State::waits;
    int before = -1;  // in the lane
    Time start{};
    Time end{};        // planned, or past
    Time planned{-1};  // start ahead of needs; -1: none
    double left = 0;
    double rate = 0;
    Time since{};
  };

  const Path& path(std::uint32_t task) const { return graph_.paths[graph_.path_of[task]]; }
  // Of compute, by what the path's bytes are.
  double slowdown_of(const Path& path) const {
    return nth(path.is_message ? graph_.message_slowdown : graph_.overlap_slowdown, path.tier);
  }
  bool meets_compute(std::uint32_t task, const std::array<double, tiers>& slowdown) const {
    return nth(slowdown, path(task).tier) > 0 && !path(task).devices.empty();
  }
  bool is_flow(std::uint32_t task) const {
    const bool slows = slowdown_of(path(task)) > 0 && !path(task).devices.empty();
    const bool meets = slows || meets_compute(task, graph_.transfer_slowdown);
    return graph_.bytes[task] > Bytes{} && (!path(task).resources.empty() || meets);
  }
  // How many times as long its bytes take.
  double drag_of(std::uint32_t task) const {
    if (!meets_compute(task, graph_.transfer_slowdown)) return 1;
    const std::vector<std::uint16_t>& devices = path(task).devices;
    for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
      const Lane& lane = graph_.lanes[graph_.lane[t]];
      if (tasks_[t].state != State::computes || graph_.duration[t] == Time{}) continue;
      if (lane.kind != LaneKind::compute) continue;
      if (std::count(devices.begin(), devices.end(), lane.device) == 0) continue;
      return 1 + nth(graph_.transfer_slowdown, path(task).tier);
    }
    return 1;
  }

  void simulate() {
    while (true) {
      bool again = true;
      while (again) {
        while (something_happens()) {
        }
        settle_flows();
        settle_compute();
        again = plan();
        for (const Task& task : tasks_) again = again || is_over(task);
      }
      const Time next = next_moment();
      if (next == Time::max()) return;
      now_ = next;
    }
  }

  bool something_happens() {
    bool any = false;
    for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
      Task& task = tasks_[t];
      if (task.state == State::setup && task.start + path(t).setup <= now_) {
        task.state = State::moves;
        const Time rest = std::max(Time{}, graph_.duration[t] - path(t).setup);
        task.left =
            static_cast<double>(path(t).resources.empty() ? rest.count() : graph_.bytes[t].count);
        task.rate = 0;
        any = true;
      } else if (is_over(task) || (is_fixed(t) && task.end <= now_)) {
        task.state = State::done;
        any = true;
      } else if (task.state == State::waits && may_start(t)) {
        begin(t);
        any = true;
      }
    }
    return any;
  }

  bool is_over(const Task& task) const {
    const bool ends = task.state == State::moves || task.state == State::computes;
    return ends && task.rate > 0 && task.end <= now_;
  }

  // Whether it has an end without a rate.
  bool is_fixed(std::uint32_t t) const {
    if (tasks_[t].state == State::moves) {
      return path(t).resources.empty() && !meets_compute(t, graph_.transfer_slowdown);
    }
    return tasks_[t].state == State::computes && graph_.duration[t] == Time{};
  }

  bool lane_is_free(std::uint32_t t) const {
    return tasks_[t].before < 0 || nth(tasks_, tasks_[t].before).state == State::done;
  }

  bool may_start(std::uint32_t t) const {
    if (!lane_is_free(t)) return false;
    if (path(t).head_start > Time{})
      return tasks_[t].planned >= Time{} && tasks_[t].planned <= now_;
    for (std::uint32_t i = graph_.need_begin[t]; i < graph_.need_begin[t + 1]; ++i) {
      const std::uint32_t need = graph_.need[i];
      if (tasks_[need].state != State::done || available(need) > now_) return false;
    }
    return true;
  }

  void begin(std::uint32_t t) {
    Task& task = tasks_[t];
    task.start = now_;
    task.end = now_ + graph_.duration[t];
    task.rate = 0;
    task.since = now_;
    task.left = static_cast<double>(graph_.duration[t].count());
    task.state = is_flow(t) ? State::setup : State::computes;
  }

  void go_on(Task& task, double rate, Time alone_end) {
    if (std::abs(rate - task.rate) <= 1e-12 * rate) return;
    const bool first = task.rate == 0;
    if (!first) task.left -= task.rate * static_cast<double>((now_ - task.since).count());
    task.left = std::max(0.0, task.left);
    task.rate = rate;
    task.since = now_;
    const bool alone = first && alone_end >= Time{};
    task.end = alone ? alone_end : now_ + time_to_end(task.left, rate);
  }

  void settle_flows() {
    std::vector<std::uint32_t> moving;
    std::vector<FlowAcross> flows;
    for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
      if (tasks_[t].state != State::moves || path(t).resources.empty()) continue;
      moving.push_back(t);
      FlowAcross flow{path(t).resources, path(t).load};
      if (flow.load.empty()) flow.load.assign(flow.links.size(), 1);
      if (!path(t).bandwidth.is_unlimited()) {
        flow.bound = static_cast<double>(path(t).bandwidth.bytes_per_second) * 1e-12;
      }
      flows.push_back(flow);
    }
    const std::vector<FairShare> shares = fair_shares(capacity_, flows);
    for (std::size_t i = 0; i < moving.size(); ++i) {
      Task& task = tasks_[moving[i]];
      if (task.rate == 0) task.since = now_;
      const Time alone = task.start + graph_.duration[moving[i]];
      const double drag = drag_of(moving[i]);
      go_on(task, shares[i].rate / drag, shares[i].at_bound && drag == 1 ? alone : Time{-1});
    }
    for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
      Task& task = tasks_[t];
      if (task.state != State::moves || !path(t).resources.empty() || is_fixed(t)) continue;
      if (task.rate == 0) task.since = now_;
      const double drag = drag_of(t);
      go_on(task, 1 / drag, drag == 1 ? task.start + graph_.duration[t] : Time{-1});
    }
  }

  void settle_compute() {
    for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
      if (tasks_[t].state != State::computes || graph_.duration[t] == Time{}) continue;
      const double slowdown = slowdown_of_lane(graph_.lanes[graph_.lane[t]]);
      const bool alone = slowdown == 1;
      go_on(tasks_[t], 1 / slowdown, alone ? tasks_[t].start + graph_.duration[t] : Time{-1});
    }
  }

  double slowdown_of_lane(const Lane& lane) const {
    double slowdown = 1;
    if (lane.kind != LaneKind::compute) return slowdown;
    for (const Tier tier : all_tiers) {
      double most = 0;
      for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
        if (tasks_[t].state != State::moves || path(t).tier != tier) continue;
        const std::vector<std::uint16_t>& devices = path(t).devices;
        if (std::count(devices.begin(), devices.end(), lane.device) == 0) continue;
        most = std::max(most, slowdown_of(path(t)));
      }
      slowdown += most;
    }
    return slowdown;
  }

  // Plans the starts ahead of needs; whether one is now.
  bool plan() {
    bool any_now = false;
    for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
      if (tasks_[t].state != State::waits || path(t).head_start == Time{}) continue;
      if (!lane_is_free(t)) continue;
      Time ready = now_;
      bool all_started = true;
      for (std::uint32_t i = graph_.need_begin[t]; i < graph_.need_begin[t + 1]; ++i) {
        const std::uint32_t need = graph_.need[i];
        all_started = all_started && tasks_[need].state != State::waits;
        ready = std::max({ready, available(need) - path(t).head_start, tasks_[need].start});
      }
      if (!all_started) continue;
      tasks_[t].planned = ready;
      any_now = any_now || ready == now_;
    }
    return any_now;
  }

  Time next_moment() const {
    Time next = Time::max();
    const auto at = [&](Time moment) {
      if (moment > now_) next = std::min(next, moment);
    };
    for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
      switch (tasks_[t].state) {
        case State::waits:
          at(tasks_[t].planned);
          break;
        case State::setup:
          at(tasks_[t].start + path(t).setup);
          break;
        case State::moves:
        case State::computes:
          at(tasks_[t].end);
          break;
        case State::done:
          at(available(t));
          break;
      }
    }
    return next;
  }

  const TaskGraph& graph_;
  std::vector<Task> tasks_;
  std::vector<double> capacity_;
  Time now_{};
};

}  // namespace stageline::test
