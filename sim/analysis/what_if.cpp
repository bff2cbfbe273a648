// What-if durations of a task graph.
#include "sim/analysis/what_if.hpp"

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

// Whether the op is part of the work that stages share equally in make_equal().
bool is_stage_work(Op op) {
  return lane_of(op.kind) == LaneKind::compute && op.kind != OpKind::update;
}

}  // namespace

WhatIf::WhatIf(const Program& program, const TaskGraph& graph)
    : program_(program), graph_(graph), duration_(graph.duration) {
  for (const Path& path : graph.paths) {
    lag_.push_back(path.lag);
    head_start_.push_back(path.head_start);
  }
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const bool takes_time = duration_[task] > Time{} || lag_[graph.path_of[task]] > Time{};
    if (takes_time) nth(takes_time_, graph.op[task].kind) = true;
  }
}

Time WhatIf::most_work() const {
  std::vector<Time> work(graph_.lanes.size());
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    work[graph_.lane[task]] += duration_[task];
  }
  Time most{};
  for (std::size_t lane = 0; lane < work.size(); ++lane) {
    if (graph_.lanes[lane].kind == LaneKind::compute) most = std::max(most, work[lane]);
  }
  return most;
}

// A path is used by one lane only, and not by both messages and reductions, so its lag and its head
// start go with its tasks.
bool WhatIf::make_free(bool (*which)(OpKind)) {
  bool any = false;
  std::array<bool, op_kinds> free{};
  for (std::size_t kind = 0; kind < free.size(); ++kind) {
    free[kind] = takes_time_[kind] && which(static_cast<OpKind>(kind));
    any = any || free[kind];
  }
  if (!any) return false;
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    if (!nth(free, graph_.op[task].kind)) continue;
    const std::uint16_t path = graph_.path_of[task];
    duration_[task] = lag_[path] = head_start_[path] = Time{};
  }
  return true;
}

bool WhatIf::make_equal() {
  add_up();
  bool changed = false;
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    if (!is_stage_work(graph_.op[task])) continue;
    const Time equal = equal_duration(task);
    changed = changed || duration_[task] != equal;
    duration_[task] = equal;
  }
  return changed;
}

// By stage: tasks of the same kind, or pairs of the same two kinds.
std::vector<WhatIf::Sum>& WhatIf::sums_of(std::uint32_t task) {
  const bool pair = graph_.op[task].overlapped && !graph_.partner.empty();
  const std::size_t second = pair ? as_size(graph_.partner[task].kind) : compute_kinds;
  const std::size_t first = as_size(graph_.op[task].kind);
  return sums_[first * (compute_kinds + 1) + std::min(second, compute_kinds)];
}

void WhatIf::add_up() {
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    const Op op = graph_.op[task];
    if (!is_stage_work(op)) continue;
    std::vector<Sum>& sums = sums_of(task);
    if (sums.empty()) sums.resize(program_.placement.stage.size());
    sums[op.stage].time += duration_[task].count();
    // All parts of an I count as one.
    if (op.overlapped || op.kind != OpKind::input_grad || op.part == 0) ++sums[op.stage].count;
  }
  for (std::vector<Sum>& sums : sums_) divide(sums);
}

void WhatIf::divide(std::vector<Sum>& sums) const {
  const auto replicas = [&](std::size_t stage) {
    return static_cast<std::int64_t>(program_.placement.stage[stage].replicas.size());
  };
  Wide time = 0;
  Wide devices = 0;
  for (std::size_t stage = 0; stage < sums.size(); ++stage) {
    if (sums[stage].count == 0) continue;
    time += sums[stage].time / sums[stage].count;
    devices += replicas(stage);
  }
  for (std::size_t stage = 0; stage < sums.size(); ++stage) {
    if (sums[stage].count == 0) continue;
    const Wide share = (time * replicas(stage) + devices / 2) / devices;
    sums[stage].equal = Time{static_cast<std::int64_t>(share)};
  }
}

Time WhatIf::equal_duration(std::uint32_t task) {
  const Op op = graph_.op[task];
  const Sum& sum = sums_of(task)[op.stage];
  if (sum.count == 0) return duration_[task];
  const StagePlace& place = program_.placement.stage[op.stage];
  if (op.overlapped || op.kind != OpKind::input_grad || place.share.empty()) return sum.equal;
  return Time{part_of(sum.equal.count(), place, op.part)};
}

}  // namespace stageline
