#include "sim/metrics.hpp"

#include <algorithm>
#include <limits>

namespace stageline {
namespace {

// Steps as the idle time sees them: a flush parts one from the next, otherwise all is one stream.
std::uint32_t phase_of(const Program& program, Op op) {
  if (program.weights != WeightRule::flush) return 0;
  if (!counts_microbatches(op.kind)) return op.microbatch;
  return op.microbatch / static_cast<std::uint32_t>(program.microbatches);
}

bool is_backward(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::input_grad || kind == OpKind::weight_grad ||
         kind == OpKind::recompute;
}

class IdleReader {
 public:
  IdleReader(const Program& program, const TaskGraph& graph, const TaskTimes& times,
             const TaskTimes& free_links, Metrics& out)
      : program_(program), graph_(graph), times_(times), free_links_(free_links), out_(out) {}

  void read(std::uint32_t lane) {
    const std::uint32_t begin = graph_.lane_begin[lane];
    const std::uint32_t end = graph_.lane_begin[lane + 1];
    device_ = graph_.lanes[lane].device;
    find_phases(begin, end);
    DeviceMetrics& device = out_.device[static_cast<std::size_t>(device_)];
    Time end_before{};
    Time end_with_free_links{};
    for (std::uint32_t i = begin; i != end; ++i) {
      const std::uint32_t task = graph_.lane_task[i];
      const Time start = start_of(graph_, times_, task);
      // A compute task has no lag: its result is there when it ends.
      const Time end_there = free_links_.available[task];
      gap(i, end_before, start, end_there - graph_.duration[task] - end_with_free_links);
      if (i == begin) first_start_ = start;
      device.busy += graph_.duration[task];
      end_before = start + graph_.duration[task];
      end_with_free_links = end_there;
    }
    if (begin != end) device.span_idle = end_before - first_start_ - device.busy;
    const Time drained =
        std::min(out_.makespan, end_before + out_.makespan_free_links - end_with_free_links);
    put(end_before, drained, IdleKind::drain, Op{});
    put(drained, out_.makespan, IdleKind::link, Op{});
  }

 private:
  struct Phase {
    std::uint32_t first_backward = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t last_forward = 0;
  };

  void note(Op op, std::uint32_t i) {
    const std::uint32_t at = phase_of(program_, op);
    if (at >= phases_.size()) phases_.resize(at + std::size_t{1});
    if (is_backward(op.kind)) {
      phases_[at].first_backward = std::min(phases_[at].first_backward, i);
    } else if (op.kind == OpKind::forward) {
      phases_[at].last_forward = i;
    }
  }

  void find_phases(std::uint32_t begin, std::uint32_t end) {
    phases_.clear();
    for (std::uint32_t i = begin; i != end; ++i) {
      const std::uint32_t task = graph_.lane_task[i];
      note(graph_.op[task], i);
      if (graph_.op[task].overlapped) note(graph_.partner[task], i);
    }
  }

  // The lane stood still from `from` to `to`, before its task number i could start; with free links
  // it would have been for `structural`.
  void gap(std::uint32_t i, Time from, Time to, Time structural) {
    const std::uint32_t task = graph_.lane_task[i];
    const Op op = graph_.op[task];
    const Time order_ends = std::min(to, from + structural);
    const Time copy_begins = std::clamp(when_copy_began(task), from, order_ends);
    const Phase& phase = phases_[phase_of(program_, op)];
    const IdleKind wait = i <= phase.first_backward ? IdleKind::fill
                          : i > phase.last_forward  ? IdleKind::drain
                                                    : IdleKind::imbalance;
    put(from, copy_begins, wait, op);
    put(copy_begins, order_ends, IdleKind::other, op);
    put(order_ends, to, IdleKind::link, op);
  }

  // Where the need that came last is a copy to or from the host: when that could begin; else never.
  Time when_copy_began(std::uint32_t task) const {
    std::uint32_t last = graph_.tasks();
    for (std::uint32_t n = graph_.need_begin[task]; n != graph_.need_begin[task + 1]; ++n) {
      const std::uint32_t need = graph_.need[n];
      if (last == graph_.tasks() || times_.available[need] > times_.available[last]) last = need;
    }
    if (last == graph_.tasks()) return Time::max();
    const LaneKind kind = graph_.lanes[graph_.lane[last]].kind;
    if (kind != LaneKind::copy_in && kind != LaneKind::copy_out) return Time::max();
    Time began{};
    for (std::uint32_t n = graph_.need_begin[last]; n != graph_.need_begin[last + 1]; ++n) {
      began = std::max(began, times_.available[graph_.need[n]]);
    }
    return began;
  }

  void put(Time from, Time to, IdleKind kind, Op before) {
    if (from >= to) return;
    DeviceMetrics& device = out_.device[static_cast<std::size_t>(device_)];
    device.idle_by[static_cast<std::size_t>(kind)] += to - from;
    out_.idle.push_back({device_, from, to, kind, before});
  }

  const Program& program_;
  const TaskGraph& graph_;
  const TaskTimes& times_;
  const TaskTimes& free_links_;
  Metrics& out_;
  std::vector<Phase> phases_;
  int device_ = 0;
  Time first_start_{};
};

}  // namespace

std::string_view name(IdleKind kind) {
  switch (kind) {
    case IdleKind::fill:
      return "fill";
    case IdleKind::drain:
      return "drain";
    case IdleKind::imbalance:
      return "imbalance";
    case IdleKind::link:
      return "link";
    case IdleKind::other:
      return "other";
  }
  return "";
}

Metrics metrics_of(const Program& program, const TaskGraph& graph, const TaskTimes& times) {
  Metrics metrics;
  metrics.makespan = makespan(times);
  metrics.device.resize(graph.devices.size());
  const TaskTimes free_links = sweep_with_free_links(graph);
  metrics.makespan_free_links = makespan(free_links);
  IdleReader reader(program, graph, times, free_links, metrics);
  std::vector<bool> works(graph.devices.size(), false);
  for (std::uint32_t lane = 0; lane < graph.lanes.size(); ++lane) {
    if (graph.lanes[lane].kind != LaneKind::compute) continue;
    if (graph.lane_begin[lane] == graph.lane_begin[lane + 1]) continue;  // messages alone
    works[static_cast<std::size_t>(graph.lanes[lane].device)] = true;
    reader.read(lane);
  }
  for (std::size_t device = 0; device < works.size(); ++device) {
    DeviceMetrics& here = metrics.device[device];
    here.idle = metrics.makespan - here.busy;
    if (works[device]) continue;
    here.idle_by[static_cast<std::size_t>(IdleKind::other)] = here.idle;
    metrics.idle.push_back(
        {static_cast<int>(device), Time{}, metrics.makespan, IdleKind::other, Op{}});
  }
  std::stable_sort(metrics.idle.begin(), metrics.idle.end(),
                   [](const IdleInterval& a, const IdleInterval& b) {
                     return a.device != b.device ? a.device < b.device : a.start < b.start;
                   });
  return metrics;
}

std::vector<Time> microbatch_ends(const Program& program, const TaskGraph& graph,
                                  const TaskTimes& times) {
  std::vector<Time> ends(program.total_microbatches());
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    std::uint32_t m = op.microbatch;
    if (!counts_microbatches(op.kind)) {
      const auto group = static_cast<std::uint32_t>(microbatches_per_update(program, op.stage));
      m = std::min((m + 1) * group, program.total_microbatches()) - 1;
    }
    ends[m] = std::max(ends[m], times.available[task]);
  }
  for (std::size_t m = 1; m < ends.size(); ++m) ends[m] = std::max(ends[m], ends[m - 1]);
  return ends;
}

std::vector<Time> step_ends(const Program& program, const TaskGraph& graph,
                            const TaskTimes& times) {
  const std::vector<Time> by_microbatch = microbatch_ends(program, graph, times);
  std::vector<Time> ends;
  for (int step = 1; step <= program.steps; ++step) {
    ends.push_back(by_microbatch[static_cast<std::size_t>(step) *
                                     static_cast<std::size_t>(program.microbatches) -
                                 1]);
  }
  return ends;
}

}  // namespace stageline
