// Why devices stand still. The same order is run without one cause after another: messages,
// reductions, copies and updates take no time, and then all stages are equal, if that is better.
// Waiting that goes away with a cause belongs to it. The rest is fill, drain or dependency by where
// it stands among the device's ops of a step:
//
//      gpu0  F F F . . . . B F . B F . B B . B . .      . waits
//            └─── fill ───┘└─ dep. ─┘└── drain ───┘
//
// Waiting moves: what a slow link makes a device wait for now, it need not wait for two ops later.
// So two runs are compared by the time waited since the region (fill, between, drain) began, and
// only that counts which the slower run does not make up for within the region:
//
//      waited more   0 2 2 5 3 3 4
//      of the cause  0 2 2 3 3 3 4     the lowest of what follows: never falls, ends where it ends
//
// Each of fill, drain and dependency is thus never longer than in the last of these runs.
#include <algorithm>
#include <array>

#include "sim/analysis/metrics.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;

// Steps as the idle time sees them: a flush parts one from the next, otherwise all is one stream.
std::uint32_t phase_of(const Program& program, Op op) {
  if (program.weights != WeightRule::flush) return 0;
  if (!counts_microbatches(op.kind)) return op.microbatch;
  return op.microbatch / static_cast<std::uint32_t>(program.microbatches);
}

bool is_backward(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::input_grad || kind == OpKind::weight_grad;
}

// Made by a backward, or from what one makes.
bool comes_of_backward(OpKind kind) {
  return is_backward(kind) || kind == OpKind::update || kind == OpKind::reduce_grad ||
         kind == OpKind::send_backward || kind == OpKind::receive_backward ||
         kind == OpKind::send_weights || kind == OpKind::receive_weights;
}

bool is_copy(OpKind kind) { return kind == OpKind::offload || kind == OpKind::prefetch; }

// ---- the same order on other durations ----------------------------------------------------------

class WhatIf {
 public:
  WhatIf(const Program& program, const TaskGraph& graph)
      : program_(program), graph_(graph), duration_(graph.duration) {
    for (const Path& path : graph.paths) lag_.push_back(path.lag);
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      const bool takes_time = duration_[task] > Time{} || lag_[graph.path_of[task]] > Time{};
      if (takes_time) takes_time_[static_cast<std::size_t>(graph.op[task].kind)] = true;
    }
  }

  const std::vector<Time>& duration() const { return duration_; }
  TaskTimes times() const { return sweep(graph_, duration_, lag_); }

  // The work of the busiest device.
  Time most_work() const {
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

  // Tasks of these kinds take no time from now on; false when they took none before. A path is used
  // by one lane only and not by messages and reductions both, so its lag goes with its tasks.
  template <class Which>
  bool make_free(Which which) {
    bool any = false;
    std::array<bool, op_kinds> free{};
    for (int kind = 0; kind < op_kinds; ++kind) {
      const auto at = static_cast<std::size_t>(kind);
      free[at] = takes_time_[at] && which(static_cast<OpKind>(kind));
      any = any || free[at];
    }
    if (!any) return false;
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
      if (!free[static_cast<std::size_t>(graph_.op[task].kind)]) continue;
      duration_[task] = lag_[graph_.path_of[task]] = Time{};
    }
    return true;
  }

  // Every stage takes as long as the mean of all for each kind of op, as much longer as it has
  // replicas to share the work; false when all did before.
  bool make_equal() {
    add_up();
    bool changed = false;
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
      const Op op = graph_.op[task];
      if (lane_of(op.kind) != LaneKind::compute || op.kind == OpKind::update) continue;
      const Time equal = equal_duration(task);
      changed = changed || duration_[task] != equal;
      duration_[task] = equal;
    }
    return changed;
  }

 private:
  struct Sum {
    Wide time = 0;
    std::int64_t count = 0;
    Time equal{};
  };
  static constexpr std::size_t compute_kinds = 6;  // the first of OpKind

  // By stage: tasks of the same kind, or pairs of the same two.
  std::vector<Sum>& sums_of(std::uint32_t task) {
    const bool pair = graph_.op[task].overlapped && !graph_.partner.empty();
    const auto second = pair ? static_cast<std::size_t>(graph_.partner[task].kind) : compute_kinds;
    const auto first = static_cast<std::size_t>(graph_.op[task].kind);
    return sums_[first * (compute_kinds + 1) + std::min(second, compute_kinds)];
  }

  void add_up() {
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
      const Op op = graph_.op[task];
      if (lane_of(op.kind) != LaneKind::compute || op.kind == OpKind::update) continue;
      std::vector<Sum>& sums = sums_of(task);
      if (sums.empty()) sums.resize(program_.placement.stage.size());
      sums[op.stage].time += duration_[task].count();
      // The parts of an I are one.
      if (op.overlapped || op.kind != OpKind::input_grad || op.part == 0) ++sums[op.stage].count;
    }
    for (std::vector<Sum>& sums : sums_) {
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
  }

  Time equal_duration(std::uint32_t task) {
    const Op op = graph_.op[task];
    const Sum& sum = sums_of(task)[op.stage];
    if (sum.count == 0) return duration_[task];
    const StagePlace& place = program_.placement.stage[op.stage];
    if (op.overlapped || op.kind != OpKind::input_grad || place.share.empty()) return sum.equal;
    return Time{part_of(sum.equal.count(), place, static_cast<int>(op.part))};
  }

  const Program& program_;
  const TaskGraph& graph_;
  std::vector<Time> duration_;  // by task
  std::vector<Time> lag_{};     // by path
  std::array<bool, op_kinds> takes_time_{};
  std::array<std::vector<Sum>, compute_kinds*(compute_kinds + 1)> sums_{};
};

// ---- where lanes wait ---------------------------------------------------------------------------

constexpr std::uint32_t no_task = 0xffffffff;

// The time between two ops of a compute lane, before its first, or behind its last. Where a step
// begins it is two: until any device begins the step, and from then on.
struct Wait {
  std::uint32_t task = no_task;  // whose start ends it; none: the end of all
  std::uint32_t phase = 0;       // that the task belongs to
  std::uint16_t lane = 0;
  IdleKind kind = IdleKind::fill;
  bool opens = false;         // the first of its region: one kind of waiting in one phase
  bool until_begins = false;  // ends where any device begins the task's phase
};

// All waits, in the order of their tasks, so that passes over them go through memory in order; then
// one a lane until the end. What a pass knows of a lane is kept by lane.
class Waits {
 public:
  Waits(const Program& program, const TaskGraph& graph)
      : program_(program), graph_(graph), phases_(graph.lanes.size()) {
    for (const Lane& lane : graph.lanes) computes_.push_back(lane.kind == LaneKind::compute);
    find_phases();
    add_all();
  }

  const std::vector<Wait>& all() const { return waits_; }
  std::size_t lanes() const { return computes_.size(); }

  // Calls visit(number, wait, from, to) for every wait in order. A compute task has no lag: its
  // result is there when it ends.
  template <class Visit>
  void walk(const TaskTimes& times, const std::vector<Time>& duration, Visit&& visit) const {
    const Time end = makespan(times);
    const std::vector<Time> begins = phase_begins(times, duration);
    std::vector<Time> free(lanes());
    for (std::size_t w = 0; w != waits_.size(); ++w) {
      const Wait& wait = waits_[w];
      const Time from = free[wait.lane];
      if (wait.task == no_task) {
        visit(w, wait, from, std::max(from, end));
        continue;
      }
      const Time length = duration[wait.task];
      const Time start = std::max(from, times.available[wait.task] - length);
      const Time to = wait.until_begins ? std::clamp(begins[wait.phase], from, start) : start;
      visit(w, wait, from, to);
      free[wait.lane] = wait.until_begins ? to : start + length;
    }
  }

 private:
  // Tasks of a lane in a phase; their numbers grow along the lane. Fill lasts up to the first
  // backward, or the first forward that waits for one; drain begins behind the last forward. A
  // device that does either alone fills up to its first op and drains behind its last.
  struct Phase {
    std::uint32_t first = no_task;
    std::uint32_t fill_ends = no_task;
    std::uint32_t last_forward = no_task;
    bool backward = false;
  };

  void note(Op op, std::uint32_t task) {
    const std::uint32_t at = phase_of(program_, op);
    std::vector<Phase>& phases = phases_[graph_.lane[task]];
    if (at >= phases.size()) phases.resize(at + std::size_t{1});
    phases_seen_ = std::max(phases_seen_, at + 1);
    Phase& phase = phases[at];
    phase.first = std::min(phase.first, task);
    const bool backward = is_backward(op.kind);
    phase.backward = phase.backward || backward;
    if (op.kind == OpKind::forward) phase.last_forward = task;
    if (phase.fill_ends != no_task) return;
    if (backward || (op.kind == OpKind::forward && waits_for_backward(task, at))) {
      phase.fill_ends = task;
    }
  }

  bool waits_for_backward(std::uint32_t task, std::uint32_t phase) const {
    for (std::uint32_t n = graph_.need_begin[task]; n != graph_.need_begin[task + 1]; ++n) {
      const Op need = graph_.op[graph_.need[n]];
      if (comes_of_backward(need.kind) && phase_of(program_, need) == phase) return true;
    }
    return false;
  }

  void find_phases() {
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

  struct Region {
    std::uint32_t phase = 0;
    IdleKind kind = IdleKind::fill;
    bool any = false;
  };

  void add_all() {
    waits_.reserve(graph_.tasks() / 2 + lanes());
    std::vector<Region> before(lanes());
    const auto add = [&](Wait wait, std::uint32_t phase) {
      Region& region = before[wait.lane];
      wait.opens = !region.any || wait.kind != region.kind || phase != region.phase;
      region = {phase, wait.kind, true};
      waits_.push_back(wait);
    };
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
      const std::uint16_t lane = graph_.lane[task];
      if (!computes_[lane]) continue;
      const std::uint32_t at = phase_of(program_, graph_.op[task]);
      const Phase& phase = phases_[lane][at];
      if (before[lane].any && at > before[lane].phase) {
        add({task, at, lane, IdleKind::drain, false, true}, before[lane].phase);
      }
      const IdleKind kind = task <= phase.fill_ends     ? IdleKind::fill
                            : task > phase.last_forward ? IdleKind::drain
                                                        : IdleKind::dependency;
      add({task, at, lane, kind, false, false}, at);
    }
    for (std::size_t lane = 0; lane < lanes(); ++lane) {
      if (!before[lane].any) continue;  // messages alone
      add({no_task, 0, static_cast<std::uint16_t>(lane), IdleKind::drain, false, false},
          before[lane].phase);
    }
  }

  // When any device begins a phase; looked at only where there are several.
  std::vector<Time> phase_begins(const TaskTimes& times, const std::vector<Time>& duration) const {
    std::vector<Time> begins(phases_seen_, Time::max());
    if (phases_seen_ <= 1) return begins;
    for (const Wait& wait : waits_) {
      if (wait.task == no_task) continue;
      Time& begin = begins[wait.phase];
      begin = std::min(begin, times.available[wait.task] - duration[wait.task]);
    }
    return begins;
  }

  const Program& program_;
  const TaskGraph& graph_;
  std::vector<bool> computes_{};  // by lane
  std::vector<std::vector<Phase>> phases_;
  std::uint32_t phases_seen_ = 0;
  std::vector<Wait> waits_{};
};

// ---- the causes of each wait --------------------------------------------------------------------

class Shares {
 public:
  Shares(const Waits& waits, const TaskTimes& times, const std::vector<Time>& duration)
      : waits_(waits), left_(waits.all().size()) {
    waits.walk(times, duration,
               [&](std::size_t w, const Wait&, Time from, Time to) { left_[w] = to - from; });
  }

  // Of what is left of the waits, what is more than without the cause is the cause's.
  void take(IdleKind cause, const TaskTimes& without, const std::vector<Time>& duration) {
    const std::vector<Wait>& all = waits_.all();
    std::vector<Time> taken(left_.size());
    std::vector<Time> sum(waits_.lanes());
    waits_.walk(without, duration, [&](std::size_t w, const Wait& wait, Time from, Time to) {
      Time& more = sum[wait.lane];
      if (wait.opens) more = Time{};
      taken[w] = more += left_[w] - (to - from);
    });
    std::vector<Time> lowest(waits_.lanes(), Time::max());
    for (std::size_t w = all.size(); w-- > 0;) {
      Time& low = lowest[all[w].lane];
      low = std::min(low, taken[w]);
      taken[w] = std::max(Time{}, low);
      if (all[w].opens) low = Time::max();
    }
    for (std::size_t w = 0; w != all.size(); ++w) {
      Time& before = sum[all[w].lane];
      if (all[w].opens) before = Time{};
      const Time here = taken[w] - before;
      before = taken[w];
      taken[w] = here;
      left_[w] -= here;
    }
    taken_.push_back({cause, std::move(taken)});
  }

  // Calls put(length, kind) for the pieces of a wait, in the order in which they stand: what the
  // order costs in any case comes first.
  template <class Put>
  void pieces(std::size_t wait, Put&& put) const {
    if (left_[wait] > Time{}) put(left_[wait], waits_.all()[wait].kind);
    for (auto by = taken_.rbegin(); by != taken_.rend(); ++by) {
      if (by->lengths[wait] > Time{}) put(by->lengths[wait], by->cause);
    }
  }

 private:
  struct Taken {
    IdleKind cause = IdleKind::fill;
    std::vector<Time> lengths;
  };
  const Waits& waits_;
  std::vector<Time> left_;
  std::vector<Taken> taken_{};
};

// The compute lanes' times of the devices that work; the intervals of each device behind those of
// the one before, a place being kept for each that does not work.
void read_lanes(const TaskGraph& graph, const TaskTimes& times, const Waits& waits,
                const Shares& shares, Metrics& out) {
  const auto device_of_lane = [&](std::uint16_t lane) {
    return static_cast<std::size_t>(graph.lanes[lane].device);
  };
  std::vector<std::size_t> next(graph.devices.size() + 1);
  std::vector<bool> works(graph.devices.size(), false);
  for (std::size_t w = 0; w != waits.all().size(); ++w) {
    const std::size_t device = device_of_lane(waits.all()[w].lane);
    works[device] = true;
    shares.pieces(w, [&](Time, IdleKind) { ++next[device + 1]; });
  }
  for (std::size_t device = 0; device < works.size(); ++device) {
    if (!works[device]) next[device + 1] = 1;
    next[device + 1] += next[device];
  }
  out.idle.resize(next.back());
  std::vector<Time> first_start(works.size(), Time{-1});
  std::vector<Time> last_end(works.size());
  waits.walk(times, graph.duration, [&](std::size_t w, const Wait& wait, Time from, Time to) {
    const std::size_t at = device_of_lane(wait.lane);
    DeviceMetrics& device = out.device[at];
    const Op before = wait.task == no_task ? Op{} : graph.op[wait.task];
    shares.pieces(w, [&](Time length, IdleKind kind) {
      device.idle_by[static_cast<std::size_t>(kind)] += length;
      out.idle[next[at]++] = {static_cast<int>(at), from, from + length, kind, before};
      from += length;
    });
    if (wait.task == no_task || wait.until_begins) return;
    if (first_start[at] < Time{}) first_start[at] = to;
    device.busy += graph.duration[wait.task];
    last_end[at] = to + graph.duration[wait.task];
  });
  for (std::size_t device = 0; device < works.size(); ++device) {
    DeviceMetrics& here = out.device[device];
    here.idle = out.makespan - here.busy;
    if (works[device]) {
      here.span_idle = last_end[device] - first_start[device] - here.busy;
      continue;
    }
    here.idle_by[static_cast<std::size_t>(IdleKind::unused)] = here.idle;
    out.idle[next[device]] = {static_cast<int>(device), Time{}, out.makespan, IdleKind::unused,
                              Op{}};
  }
}

}  // namespace

std::string_view name(IdleKind kind) {
  switch (kind) {
    case IdleKind::fill:
      return "fill";
    case IdleKind::drain:
      return "drain";
    case IdleKind::dependency:
      return "dependency";
    case IdleKind::imbalance:
      return "imbalance";
    case IdleKind::link:
      return "link";
    case IdleKind::collectives:
      return "collectives";
    case IdleKind::optimizer:
      return "optimizer";
    case IdleKind::copies:
      return "copies";
    case IdleKind::unused:
      return "unused";
  }
  return "";
}

Metrics metrics_of(const Program& program, const TaskGraph& graph, const TaskTimes& times) {
  Metrics metrics;
  metrics.makespan = makespan(times);
  metrics.device.resize(graph.devices.size());

  const Waits waits(program, graph);
  Shares shares(waits, times, graph.duration);
  WhatIf what_if(program, graph);
  const auto ask = [&](IdleKind cause) {
    const TaskTimes without = what_if.times();
    shares.take(cause, without, what_if.duration());
    return makespan(without);
  };
  what_if.make_free([](OpKind kind) { return cargo_of(kind).has_value(); });
  Time shortest = ask(IdleKind::link);
  if (what_if.make_free([](OpKind kind) { return kind == OpKind::reduce_grad; })) {
    shortest = ask(IdleKind::collectives);
  }
  metrics.makespan_free_links = shortest;
  if (what_if.make_free(is_copy)) shortest = ask(IdleKind::copies);
  if (what_if.make_free([](OpKind kind) { return kind == OpKind::update; })) {
    shortest = ask(IdleKind::optimizer);
  }
  // Devices do not wait for unequal stages where equal ones are no better: where a device does more
  // than the others in any case, as with roles apart, a cut that makes up for it is uneven.
  const Time most_work = what_if.most_work();
  if (what_if.make_equal()) {
    const TaskTimes equal = what_if.times();
    if (makespan(equal) < shortest || what_if.most_work() < most_work) {
      shares.take(IdleKind::imbalance, equal, what_if.duration());
    }
  }

  read_lanes(graph, times, waits, shares, metrics);
  return metrics;
}

}  // namespace stageline
