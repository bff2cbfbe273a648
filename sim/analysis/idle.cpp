// Why devices are idle. The same order is run without one cause after another: messages,
// reductions, copies and updates take no time, and then all stages are equal, if that is better.
// Idle time that disappears with a cause is charged to it. The rest is fill, drain or dependency,
// by its place among the device's ops of a step:
//
//      gpu0  F F F . . . . B F . B F . B B . B . .      . idle
//            └─── fill ───┘└─ dep. ─┘└── drain ───┘
//
// Idle time moves: if a slow link delays a device now, the device may wait less two ops later. So
// two runs are compared by their idle time since the region (fill, between, drain) began, and only
// the part of the excess counts that lasts to the end of the region:
//
//      idle more     0 2 2 5 3 3 4
//      of the cause  0 2 2 3 3 3 4     the minimum of this and all later values: never decreases
//
// Each of fill, drain and dependency is thus never longer than in the last of these runs.
//
// For a measured run, the first of these runs takes the measured times and starts every op as soon
// as it can: idle time that disappears there has no cause in the program.
#include <algorithm>
#include <optional>

#include "sim/analysis/lane_gaps.hpp"
#include "sim/analysis/measured_idle.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/what_if.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// Empty: idle time of a measured run that the program does not explain.
using Cause = std::optional<IdleKind>;

// The causes of each gap.
class Shares {
 public:
  Shares(const LaneGaps& gaps, const TaskTimes& times, const std::vector<Time>& duration)
      : gaps_(gaps), left_(gaps.all().size()) {
    gaps.walk(times, duration,
              [&](std::size_t g, const LaneGap&, Time from, Time to) { left_[g] = to - from; });
  }

  // Charges to the cause the time by which the gaps, as far as they are not charged yet, are longer
  // than without it.
  void take(Cause cause, const TaskTimes& without, const std::vector<Time>& duration) {
    const std::vector<LaneGap>& all = gaps_.all();
    std::vector<Time> taken(left_.size());
    std::vector<Time> sum(gaps_.lanes());
    gaps_.walk(without, duration, [&](std::size_t g, const LaneGap& gap, Time from, Time to) {
      Time& more = sum[gap.lane];
      if (gap.opens) more = Time{};
      taken[g] = more += left_[g] - (to - from);
    });
    std::vector<Time> lowest(gaps_.lanes(), Time::max());
    for (std::size_t g = all.size(); g-- > 0;) {
      Time& low = lowest[all[g].lane];
      low = std::min(low, taken[g]);
      taken[g] = std::max(Time{}, low);
      if (all[g].opens) low = Time::max();
    }
    for (std::size_t g = 0; g != all.size(); ++g) {
      Time& before = sum[all[g].lane];
      if (all[g].opens) before = Time{};
      const Time here = taken[g] - before;
      before = taken[g];
      taken[g] = here;
      left_[g] -= here;
    }
    taken_.push_back({cause, std::move(taken)});
  }

  // Calls put(length, cause) for the pieces of a gap in order of time: first the cost of the order
  // itself, then the causes, the last one that was charged first.
  template <class Put>
  void pieces(std::size_t gap, Put&& put) const {
    if (left_[gap] > Time{}) put(left_[gap], Cause(gaps_.all()[gap].kind));
    for (auto by = taken_.rbegin(); by != taken_.rend(); ++by) {
      if (by->lengths[gap] > Time{}) put(by->lengths[gap], by->cause);
    }
  }

 private:
  struct Taken {
    Cause cause;
    std::vector<Time> lengths;  // by gap
  };
  const LaneGaps& gaps_;
  std::vector<Time> left_;  // by gap: not charged to a cause yet
  std::vector<Taken> taken_;
};

// Fills in the metrics of every device, and the idle intervals, those of each device after those of
// the one before. A device without work has a single interval, if the run takes time. Idle time
// without a cause has none.
void read_lanes(const TaskGraph& graph, const TaskTimes& times, const LaneGaps& gaps,
                const Shares& shares, MeasuredIdle& result) {
  Metrics& out = result.metrics;
  const auto device_of_lane = [&](std::uint16_t lane) { return as_size(graph.lanes[lane].device); };
  std::vector<std::size_t> next(graph.devices.size() + 1);
  std::vector<bool> works(graph.devices.size(), false);
  for (std::size_t g = 0; g != gaps.all().size(); ++g) {
    const std::size_t device = device_of_lane(gaps.all()[g].lane);
    works[device] = true;
    shares.pieces(g, [&](Time, Cause cause) { next[device + 1] += cause ? 1U : 0U; });
  }
  for (std::size_t device = 0; device < works.size(); ++device) {
    if (!works[device]) next[device + 1] = out.makespan > Time{} ? 1 : 0;
    next[device + 1] += next[device];
  }
  out.idle.resize(next.back());
  std::vector<Time> first_start(works.size(), Time{-1});
  std::vector<Time> last_end(works.size());
  gaps.walk(times, graph.duration, [&](std::size_t g, const LaneGap& gap, Time from, Time to) {
    const std::size_t at = device_of_lane(gap.lane);
    DeviceMetrics& device = out.device[at];
    const bool last = gap.task == LaneGap::no_task;
    const Op before = last ? Op{} : graph.op[gap.task];
    shares.pieces(g, [&](Time length, Cause cause) {
      if (cause) {
        nth(device.idle_by, *cause) += length;
        out.idle[next[at]++] = {static_cast<int>(at), from, from + length, *cause, before};
      } else {
        result.other[at] += length;
      }
      from += length;
    });
    if (last || gap.until_begins) return;
    if (first_start[at] < Time{}) first_start[at] = to;
    device.busy += graph.duration[gap.task];
    last_end[at] = to + graph.duration[gap.task];
  });
  for (std::size_t device = 0; device < works.size(); ++device) {
    DeviceMetrics& here = out.device[device];
    here.idle = out.makespan - here.busy;
    if (works[device]) {
      here.span_idle = last_end[device] - first_start[device] - here.busy;
      continue;
    }
    nth(here.idle_by, IdleKind::unused) = here.idle;
    if (here.idle == Time{}) continue;
    out.idle[next[device]] = {static_cast<int>(device), Time{}, out.makespan, IdleKind::unused,
                              Op{}};
  }
}

MeasuredIdle account(const Program& program, const TaskGraph& graph, const TaskTimes& times,
                     bool measured) {
  MeasuredIdle result;
  Metrics& metrics = result.metrics;
  metrics.makespan = makespan(times);
  metrics.device.resize(graph.devices.size());
  result.other.resize(graph.devices.size());

  const LaneGaps gaps(program, graph);
  Shares shares(gaps, times, graph.duration);
  WhatIf what_if(program, graph);
  const auto charge = [&](Cause cause) {
    const TaskTimes without = what_if.times();
    shares.take(cause, without, what_if.duration());
    return makespan(without);
  };
  if (measured) charge({});
  what_if.make_free([](OpKind kind) { return class_of(kind) == OpClass::message; });
  Time shortest = charge(IdleKind::link);
  if (what_if.make_free([](OpKind kind) { return kind == OpKind::reduce_grad; })) {
    shortest = charge(IdleKind::collectives);
  }
  metrics.makespan_free_links = shortest;
  if (what_if.make_free([](OpKind kind) { return class_of(kind) == OpClass::copy; })) {
    shortest = charge(IdleKind::copies);
  }
  if (what_if.make_free([](OpKind kind) { return kind == OpKind::update; })) {
    shortest = charge(IdleKind::optimizer);
  }
  // Unequal stages are not a cause if equal ones are no better: where a device has more work than
  // the others in any case, as with split roles, an uneven cut makes up for it.
  const Time most_work = what_if.most_work();
  if (what_if.make_equal()) {
    const TaskTimes equal = what_if.times();
    if (makespan(equal) < shortest || what_if.most_work() < most_work) {
      shares.take(IdleKind::imbalance, equal, what_if.duration());
    }
  }

  read_lanes(graph, times, gaps, shares, result);
  return result;
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
  return account(program, graph, times, /*measured=*/false).metrics;
}

MeasuredIdle measured_metrics_of(const Program& program, const TaskGraph& graph,
                                 const TaskTimes& times) {
  return account(program, graph, times, /*measured=*/true);
}

}  // namespace stageline
