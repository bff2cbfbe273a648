// Compares what the tasks of three steps wait for, and when they start.
#include "tools/study/pace/quick_pace.hpp"

#include <algorithm>

#include "sim/analysis/metrics.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::uint32_t none = 0xffffffff;

// What a task waits for: a node, and how many steps before its own.
struct NeedWait {
  std::uint32_t node = none;
  int before = 0;
  bool in_lane = false;
  friend auto operator<=>(const NeedWait&, const NeedWait&) = default;
};

}  // namespace

QuickPace::QuickPace(const Program& program, const TaskGraph& graph) {
  regular_ = program.steps == steps && graph.tasks() > 0 && number_tasks(program, graph);
  if (regular_) compare_waits(graph);
}

// Ops of one kind, stage and part have as many numbers as a step has micro-batches, or one.
bool QuickPace::number_tasks(const Program& program, const TaskGraph& graph) {
  std::size_t stages = 0;
  std::size_t parts = 0;
  for (const Op op : graph.op) {
    stages = std::max(stages, std::size_t{op.stage} + 1);
    parts = std::max(parts, std::size_t{op.part} + 1);
  }
  const auto family = [&](Op op) {
    return (as_size(op.kind) * stages + op.stage) * parts + op.part;
  };
  const auto m = static_cast<std::uint32_t>(program.microbatches);
  const auto in_step = [&](OpKind kind) { return counts_microbatches(kind) ? m : 1; };
  std::vector<char> any(as_size(op_kinds) * stages * parts);
  for (const Op op : graph.op) any[family(op)] = 1;
  std::vector<std::size_t> first(any.size());  // by family: the node of its number 0
  std::size_t numbers = 0;
  for (std::size_t f = 0; f < any.size(); ++f) {
    first[f] = numbers;
    if (any[f] != 0) numbers += in_step(static_cast<OpKind>(f / (stages * parts)));
  }
  nodes_.assign(numbers, {none, none, none});
  bool begins = false;
  for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
    const Op op = graph.op[t];
    const std::uint32_t each = in_step(op.kind);
    if (op.microbatch / each >= steps) return false;
    std::uint32_t& task =
        nth(nodes_[first[family(op)] + op.microbatch % each], op.microbatch / each);
    if (task != none) return false;
    task = t;
    if (op.kind == OpKind::forward && op.stage == 0 && op.microbatch == m) {
      begin_ = t;
      begins = true;
    }
  }
  if (!begins) return false;
  // A message travels on one of several wires.
  std::erase_if(nodes_, [](const auto& tasks) { return tasks == std::array{none, none, none}; });
  of_task_.resize(graph.tasks());
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    const auto& [a, b, c] = nodes_[n];
    if (a == none || b == none || c == none) return false;
    if (graph.lane[a] != graph.lane[b] || graph.lane[b] != graph.lane[c]) return false;
    of_task_[a] = {n, 0};
    of_task_[b] = {n, 1};
    of_task_[c] = {n, 2};
  }
  return true;
}

void QuickPace::compare_waits(const TaskGraph& graph) {
  std::vector<std::uint32_t> in_lane(graph.tasks(), none);
  for (std::size_t l = 0; l + 1 < graph.lane_begin.size(); ++l) {
    for (std::uint32_t k = graph.lane_begin[l] + 1; k < graph.lane_begin[l + 1]; ++k) {
      in_lane[graph.lane_task[k]] = graph.lane_task[k - 1];
    }
  }
  const auto waits_of = [&](std::uint32_t task, std::vector<NeedWait>& waits) {
    waits.clear();
    const auto add = [&](std::uint32_t from, bool lane) {
      waits.push_back({of_task_[from].node, of_task_[task].step - of_task_[from].step, lane});
    };
    for (std::uint32_t k = graph.need_begin[task]; k < graph.need_begin[task + 1]; ++k) {
      add(graph.need[k], false);
    }
    if (in_lane[task] != none) add(in_lane[task], true);
  };
  // Most have theirs in the same order, too.
  const auto alike = [](std::vector<NeedWait>& one, std::vector<NeedWait>& other) {
    if (one == other) return true;
    if (one.size() != other.size()) return false;
    std::sort(one.begin(), one.end());
    std::sort(other.begin(), other.end());
    return one == other;
  };
  std::vector<NeedWait> first;
  std::vector<NeedWait> second;
  std::vector<NeedWait> third;
  same_first_.reserve(nodes_.size());
  for (const auto& tasks : nodes_) {
    waits_of(tasks[0], first);
    waits_of(tasks[1], second);
    waits_of(tasks[2], third);
    regular_ = regular_ && alike(second, third) &&
               std::none_of(second.begin(), second.end(),
                            [](const NeedWait& wait) { return wait.before < 0; });
    if (!regular_) return;
    same_first_.push_back(alike(second, first) ? 1 : 0);
  }
}

std::optional<Time> QuickPace::step(const TaskGraph& graph, const TaskTimes& times) const {
  if (!regular_ || flows_take_no_turns(graph)) return std::nullopt;
  const bool shared = shares_resources(graph);
  const auto start = [&](std::uint32_t task) { return start_of(graph, times, task); };
  const Time begin = start(begin_);
  const Time step = start(nodes_[0][2]) - start(nodes_[0][1]);
  if (step <= Time{}) return std::nullopt;
  std::vector<char> early(nodes_.size());  // counted from the first step on
  Time first_end{};
  Time second_end{};
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const auto& [a, b, c] = nodes_[n];
    const bool alike = graph.duration[a] == graph.duration[b] &&
                       graph.duration[b] == graph.duration[c] &&
                       graph.path_of[a] == graph.path_of[b] && graph.path_of[b] == graph.path_of[c];
    if (!alike || start(c) - start(b) != step || start(b) < begin) return std::nullopt;
    early[n] = start(a) >= begin ? 1 : 0;
    if (early[n] != 0 && same_first_[n] == 0) return std::nullopt;
    first_end = std::max(first_end, times.available[a]);
    second_end = std::max(second_end, times.available[b]);
  }
  if (!shared) return step;
  if (std::max(second_end, first_end) - first_end != step) return std::nullopt;
  if (!turns_repeat(graph, times, early)) return std::nullopt;
  return step;
}

std::optional<Time> QuickPace::step_with_free_links(const TaskTimes& times) const {
  const auto step_of = [&](const std::array<std::uint32_t, steps>& tasks) {
    return times.available[tasks[2]] - times.available[tasks[1]];
  };
  const Time step = step_of(nodes_.front());
  const bool all = std::all_of(nodes_.begin(), nodes_.end(),
                               [&](const auto& tasks) { return step_of(tasks) == step; });
  if (!all || step <= Time{}) return std::nullopt;
  return step;
}

// The turns on every shared resource: its tasks in the order in which they are served.
std::vector<std::vector<std::uint32_t>> QuickPace::turns(const TaskGraph& graph,
                                                         const TaskTimes& times) {
  std::vector<std::vector<std::uint32_t>> users(graph.resources.size());
  std::vector<std::size_t> merged(graph.resources.size());
  std::vector<std::uint32_t> used;  // by the lane
  const auto sooner = [&](std::uint32_t a, std::uint32_t b) {
    const Time of_a = start_of(graph, times, a);
    const Time of_b = start_of(graph, times, b);
    return of_a != of_b ? of_a < of_b : a < b;
  };
  for (std::size_t l = 0; l + 1 < graph.lane_begin.size(); ++l) {
    if (graph.lanes[l].kind == LaneKind::compute) continue;  // needs no link
    used.clear();
    for (std::uint32_t k = graph.lane_begin[l]; k < graph.lane_begin[l + 1]; ++k) {
      const std::uint32_t task = graph.lane_task[k];
      for (const std::uint32_t r : graph.paths[graph.path_of[task]].resources) {
        if (users[r].size() == merged[r]) used.push_back(r);
        users[r].push_back(task);
      }
    }
    // Tasks of one lane are in order already.
    for (const std::uint32_t r : used) {
      const auto middle = users[r].begin() + static_cast<std::ptrdiff_t>(merged[r]);
      std::inplace_merge(users[r].begin(), middle, users[r].end(), sooner);
      merged[r] = users[r].size();
    }
  }
  return users;
}

// Whether these turns are those of one step after those of another, from end to end.
bool QuickPace::goes_by_steps(const std::vector<std::uint32_t>& order,
                              const std::vector<char>& early) const {
  if (order.size() % steps != 0) return false;
  const std::size_t each = order.size() / steps;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Task& at = of_task_[order[i]];
    if (at.step != static_cast<int>(i / each) || early[at.node] != 0) return false;
    if (i >= 2 * each && at.node != of_task_[order[i - each]].node) return false;
  }
  return each == 0 || of_task_[order[each - 1]].node == of_task_[order[2 * each - 1]].node;
}

// Whether the turns on every shared resource are the same in the two rounds that are compared.
bool QuickPace::turns_repeat(const TaskGraph& graph, const TaskTimes& times,
                             const std::vector<char>& early) const {
  std::array<std::vector<NeedWait>, steps> turn;  // by node
  for (const std::vector<std::uint32_t>& order : turns(graph, times)) {
    if (goes_by_steps(order, early)) continue;
    for (std::vector<NeedWait>& of_step : turn) of_step.resize(nodes_.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Task& at = of_task_[order[i]];
      NeedWait& wait = nth(turn, at.step)[at.node];
      wait = {};
      if (i == 0) continue;
      const Task& before = of_task_[order[i - 1]];
      wait = {before.node, at.step - before.step, false};
    }
    for (const std::uint32_t task : order) {
      const Task& at = of_task_[task];
      if (at.step != 1) continue;
      const std::size_t first = early[at.node] != 0 ? 0 : 1;
      const NeedWait& wait = turn[first][at.node];
      if (wait != turn[first + 1][at.node] || wait.node == none) return false;
      const int apart = wait.before + (early[wait.node] != 0 ? 0 : 1) - static_cast<int>(first);
      if (apart < 0) return false;
    }
  }
  return true;
}

}  // namespace stageline
