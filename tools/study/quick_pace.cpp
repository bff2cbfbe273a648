// Compares what the tasks of three steps wait for, and when they start.
#include "tools/study/quick_pace.hpp"

#include <algorithm>
#include <tuple>

#include "sim/analysis/metrics.hpp"
#include "sim/index.hpp"

namespace stageline {
namespace {

constexpr std::uint32_t none = 0xffffffff;

// What a task waits for: a node, and how many steps before its own.
struct Wait {
  std::uint32_t node = none;
  int before = 0;
  bool in_lane = false;
  friend auto operator<=>(const Wait&, const Wait&) = default;
};

}  // namespace

QuickPace::QuickPace(const Program& program, const TaskGraph& graph) {
  regular_ = program.steps == steps && graph.tasks() > 0 && number_tasks(program, graph);
  if (regular_) compare_waits(graph);
}

bool QuickPace::number_tasks(const Program& program, const TaskGraph& graph) {
  const auto m = static_cast<std::uint32_t>(program.microbatches);
  using Entry = std::tuple<OpKind, std::uint16_t, int, std::uint32_t, int, std::uint32_t>;
  std::vector<Entry> entries;
  entries.reserve(graph.tasks());
  bool begins = false;
  for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
    const Op op = graph.op[t];
    const std::uint32_t in_step = counts_microbatches(op.kind) ? m : 1;
    entries.emplace_back(op.kind, op.stage, int{op.part}, op.microbatch % in_step,
                         static_cast<int>(op.microbatch / in_step), t);
    if (op.kind == OpKind::forward && op.stage == 0 && op.microbatch == m) {
      begin_ = t;
      begins = true;
    }
  }
  if (!begins || entries.size() % steps != 0) return false;
  std::sort(entries.begin(), entries.end());
  of_task_.resize(graph.tasks());
  for (std::size_t i = 0; i < entries.size(); i += steps) {
    nodes_.emplace_back();
    for (int step = 0; step < steps; ++step) {
      const auto& [kind, stage, part, number, in, task] = entries[i + as_size(step)];
      const auto& [kind0, stage0, part0, number0, in0, task0] = entries[i];
      const bool again = kind == kind0 && stage == stage0 && part == part0 && number == number0;
      if (!again || in != step || graph.lane[task] != graph.lane[task0]) return false;
      nth(nodes_.back(), step) = task;
      of_task_[task] = {static_cast<std::uint32_t>(nodes_.size() - 1), step};
    }
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
  const auto waits_of = [&](std::uint32_t task) {
    std::vector<Wait> waits;
    const auto add = [&](std::uint32_t from, bool lane) {
      waits.push_back({of_task_[from].node, of_task_[task].step - of_task_[from].step, lane});
    };
    for (std::uint32_t k = graph.need_begin[task]; k < graph.need_begin[task + 1]; ++k) {
      add(graph.need[k], false);
    }
    if (in_lane[task] != none) add(in_lane[task], true);
    std::sort(waits.begin(), waits.end());
    return waits;
  };
  for (const auto& tasks : nodes_) {
    const std::vector<Wait> second = waits_of(tasks[1]);
    regular_ = regular_ && second == waits_of(tasks[2]) &&
               std::none_of(second.begin(), second.end(),
                            [](const Wait& wait) { return wait.before < 0; });
    same_first_.push_back(second == waits_of(tasks[0]) ? 1 : 0);
  }
}

std::optional<Time> QuickPace::step(const TaskGraph& graph, const TaskTimes& times) const {
  if (!regular_) return std::nullopt;
  const bool shared = shares_resources(graph);
  if (shared && is_fair(graph)) return std::nullopt;
  std::vector<Time> lag;
  for (const Path& path : graph.paths) lag.push_back(path.lag);
  std::vector<Time> start(graph.tasks());
  for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
    start[t] = times.available[t] - lag[graph.path_of[t]] - graph.duration[t];
  }
  const Time begin = start[begin_];
  const Time step = start[nodes_[0][2]] - start[nodes_[0][1]];
  if (step <= Time{}) return std::nullopt;
  std::vector<char> early(nodes_.size());  // counted from the first step on
  Time first_end{};
  Time second_end{};
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const auto& [a, b, c] = nodes_[n];
    const bool alike = graph.duration[a] == graph.duration[b] &&
                       graph.duration[b] == graph.duration[c] &&
                       graph.path_of[a] == graph.path_of[b] && graph.path_of[b] == graph.path_of[c];
    if (!alike || start[c] - start[b] != step || start[b] < begin) return std::nullopt;
    early[n] = start[a] >= begin ? 1 : 0;
    if (early[n] != 0 && same_first_[n] == 0) return std::nullopt;
    first_end = std::max(first_end, times.available[a]);
    second_end = std::max(second_end, times.available[b]);
  }
  if (!shared) return step;
  if (std::max(second_end, first_end) - first_end != step) return std::nullopt;
  if (!turns_repeat(graph, start, early)) return std::nullopt;
  return step;
}

// Whether the turns on every shared resource are the same in the two rounds that are compared.
bool QuickPace::turns_repeat(const TaskGraph& graph, const std::vector<Time>& start,
                             const std::vector<char>& early) const {
  std::vector<std::vector<std::uint32_t>> users(graph.resources.size());
  std::vector<std::size_t> merged(graph.resources.size());
  const auto sooner = [&](std::uint32_t a, std::uint32_t b) {
    return start[a] != start[b] ? start[a] < start[b] : a < b;
  };
  for (std::size_t l = 0; l + 1 < graph.lane_begin.size(); ++l) {
    if (graph.lanes[l].kind == LaneKind::compute) continue;  // needs no link
    for (std::uint32_t k = graph.lane_begin[l]; k < graph.lane_begin[l + 1]; ++k) {
      const std::uint32_t task = graph.lane_task[k];
      for (const std::uint32_t r : graph.paths[graph.path_of[task]].resources) {
        users[r].push_back(task);
      }
    }
    // Tasks of one lane are in order already.
    for (std::size_t r = 0; r < users.size(); ++r) {
      const auto middle = users[r].begin() + static_cast<std::ptrdiff_t>(merged[r]);
      std::inplace_merge(users[r].begin(), middle, users[r].end(), sooner);
      merged[r] = users[r].size();
    }
  }
  std::array<std::vector<Wait>, steps> turn;  // by node
  for (std::vector<Wait>& of_step : turn) of_step.resize(nodes_.size());
  for (const std::vector<std::uint32_t>& order : users) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Task& at = of_task_[order[i]];
      Wait& wait = nth(turn, at.step)[at.node];
      wait = {};
      if (i == 0) continue;
      const Task& before = of_task_[order[i - 1]];
      wait = {before.node, at.step - before.step, false};
    }
    for (const std::uint32_t task : order) {
      const Task& at = of_task_[task];
      if (at.step != 1) continue;
      const std::size_t first = early[at.node] != 0 ? 0 : 1;
      const Wait& wait = turn[first][at.node];
      if (wait != turn[first + 1][at.node] || wait.node == none) return false;
      const int apart = wait.before + (early[wait.node] != 0 ? 0 : 1) - static_cast<int>(first);
      if (apart < 0) return false;
    }
  }
  return true;
}

}  // namespace stageline
