// The gaps between the ops of compute lanes, by phase and region.
#include "sim/analysis/lane_gaps.hpp"

namespace stageline {
namespace {

constexpr std::uint32_t no_task = LaneGap::no_task;

// A flush separates the steps; without one the whole run is a single phase.
std::uint32_t phase_of(const Program& program, Op op) {
  if (program.settings.weights != WeightRule::flush) return 0;
  if (!counts_microbatches(op.kind)) return op.microbatch;
  return op.microbatch / static_cast<std::uint32_t>(program.microbatches);
}

// Whether a backward makes what the op makes, or the op depends on a backward of its phase.
bool follows_backward(OpKind kind) {
  switch (class_of(kind)) {
    case OpClass::backward:
    case OpClass::update:
    case OpClass::reduction:
      return true;
    case OpClass::message: {
      const Cargo cargo = *cargo_of(kind);
      return cargo == Cargo::gradient || cargo == Cargo::weights;
    }
    case OpClass::forward:
    case OpClass::recompute:
    case OpClass::copy:
      return false;
  }
  return false;
}

}  // namespace

LaneGaps::LaneGaps(const Program& program, const TaskGraph& graph)
    : program_(program), graph_(graph), phases_(graph.lanes.size()) {
  for (const Lane& lane : graph.lanes) computes_.push_back(lane.kind == LaneKind::compute);
  find_phases();
  add_all();
}

void LaneGaps::find_phases() {
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    if (!computes_[graph_.lane[task]]) continue;
    note(graph_.op[task], task);
    if (graph_.op[task].overlapped) note(graph_.partner[task], task);
  }
  for (std::vector<Phase>& phases : phases_) {
    for (Phase& phase : phases) {
      if (phase.fill_ends == no_task) phase.fill_ends = phase.first;
      if (!phase.backward) phase.last_forward = no_task;
    }
  }
}

void LaneGaps::note(Op op, std::uint32_t task) {
  const std::uint32_t at = phase_of(program_, op);
  std::vector<Phase>& phases = phases_[graph_.lane[task]];
  if (at >= phases.size()) phases.resize(at + std::size_t{1});
  phases_seen_ = std::max(phases_seen_, at + 1);
  Phase& phase = phases[at];
  phase.first = std::min(phase.first, task);
  const bool backward = class_of(op.kind) == OpClass::backward;
  phase.backward = phase.backward || backward;
  if (op.kind == OpKind::forward) phase.last_forward = task;
  if (phase.fill_ends != no_task) return;
  if (backward || (op.kind == OpKind::forward && waits_for_backward(task, at))) {
    phase.fill_ends = task;
  }
}

bool LaneGaps::waits_for_backward(std::uint32_t task, std::uint32_t phase) const {
  for (std::uint32_t n = graph_.need_begin[task]; n != graph_.need_begin[task + 1]; ++n) {
    const Op need = graph_.op[graph_.need[n]];
    if (follows_backward(need.kind) && phase_of(program_, need) == phase) return true;
  }
  return false;
}

void LaneGaps::add(LaneGap gap, std::uint32_t phase, Region& before) {
  gap.opens = !before.any || gap.kind != before.kind || phase != before.phase;
  before = {phase, gap.kind, true};
  gaps_.push_back(gap);
}

void LaneGaps::add_all() {
  gaps_.reserve(graph_.tasks() / 2 + lanes());
  std::vector<Region> before(lanes());
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    const std::uint16_t lane = graph_.lane[task];
    if (!computes_[lane]) continue;
    const std::uint32_t at = phase_of(program_, graph_.op[task]);
    const Phase& phase = phases_[lane][at];
    Region& region = before[lane];
    if (region.any && at > region.phase) {
      add({task, at, lane, IdleKind::drain, false, true}, region.phase, region);
    }
    const IdleKind kind = task <= phase.fill_ends     ? IdleKind::fill
                          : task > phase.last_forward ? IdleKind::drain
                                                      : IdleKind::dependency;
    add({task, at, lane, kind, false, false}, at, region);
  }
  for (std::size_t lane = 0; lane < lanes(); ++lane) {
    Region& region = before[lane];
    if (!region.any) continue;  // not a compute lane
    add({no_task, 0, static_cast<std::uint16_t>(lane), IdleKind::drain, false, false}, region.phase,
        region);
  }
}

// By phase, when the first device begins it; only needed if there are several.
std::vector<Time> LaneGaps::phase_begins(const TaskTimes& times,
                                         const std::vector<Time>& duration) const {
  std::vector<Time> begins(phases_seen_, Time::max());
  if (phases_seen_ <= 1) return begins;
  for (const LaneGap& gap : gaps_) {
    if (gap.task == no_task) continue;
    Time& begin = begins[gap.phase];
    begin = std::min(begin, times.available[gap.task] - duration[gap.task]);
  }
  return begins;
}

}  // namespace stageline
