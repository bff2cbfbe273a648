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
  IdleReader(const Program& program, const TaskGraph& graph, const TaskTimes& times, Metrics& out)
      : program_(program), graph_(graph), times_(times), out_(out) {}

  void read(std::uint32_t lane) {
    const std::uint32_t begin = graph_.lane_begin[lane];
    const std::uint32_t end = graph_.lane_begin[lane + 1];
    device_ = graph_.lanes[lane].device;
    find_phases(begin, end);
    DeviceMetrics& device = out_.device[static_cast<std::size_t>(device_)];
    Time free{};
    for (std::uint32_t i = begin; i != end; ++i) {
      const std::uint32_t task = graph_.lane_task[i];
      const Time start = start_of(graph_, times_, task);
      if (start > free) gap(i, free, start);
      if (i == begin) first_start_ = start;
      device.busy += graph_.duration[task];
      free = start + graph_.duration[task];
    }
    if (begin != end) device.span_idle = free - first_start_ - device.busy;
    if (out_.makespan > free) put(free, out_.makespan, IdleKind::drain, Op{});
  }

 private:
  struct Phase {
    std::uint32_t first_backward = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t last_forward = 0;
  };

  void find_phases(std::uint32_t begin, std::uint32_t end) {
    phases_.clear();
    for (std::uint32_t i = begin; i != end; ++i) {
      const Op op = graph_.op[graph_.lane_task[i]];
      const std::uint32_t at = phase_of(program_, op);
      if (at >= phases_.size()) phases_.resize(at + std::size_t{1});
      if (is_backward(op.kind)) {
        phases_[at].first_backward = std::min(phases_[at].first_backward, i);
      } else if (op.kind == OpKind::forward || op.overlapped) {
        phases_[at].last_forward = i;
      }
    }
  }

  // The lane stood still from `from` to `to`, before its task number i could start.
  void gap(std::uint32_t i, Time from, Time to) {
    const std::uint32_t task = graph_.lane_task[i];
    const Op op = graph_.op[task];
    std::uint32_t last = graph_.tasks();  // the need that came last
    for (std::uint32_t n = graph_.need_begin[task]; n != graph_.need_begin[task + 1]; ++n) {
      const std::uint32_t need = graph_.need[n];
      if (last == graph_.tasks() || times_.available[need] > times_.available[last]) last = need;
    }
    Time travels = to;  // from here on, what it waits for was on its way
    IdleKind way = IdleKind::link;
    if (last != graph_.tasks() && graph_.lanes[graph_.lane[last]].kind != LaneKind::compute) {
      const OpKind kind = graph_.op[last].kind;
      way = kind == OpKind::send_forward || kind == OpKind::send_backward ? IdleKind::link
                                                                          : IdleKind::other;
      travels = Time{};
      for (std::uint32_t n = graph_.need_begin[last]; n != graph_.need_begin[last + 1]; ++n) {
        travels = std::max(travels, times_.available[graph_.need[n]]);
      }
      travels = std::clamp(travels, from, to);
    }
    const Phase& phase = phases_[phase_of(program_, op)];
    const IdleKind wait = i <= phase.first_backward ? IdleKind::fill
                          : i > phase.last_forward  ? IdleKind::drain
                                                    : IdleKind::imbalance;
    if (travels > from) put(from, travels, wait, op);
    if (to > travels) put(travels, to, way, op);
  }

  void put(Time from, Time to, IdleKind kind, Op before) {
    DeviceMetrics& device = out_.device[static_cast<std::size_t>(device_)];
    device.idle_by[static_cast<std::size_t>(kind)] += to - from;
    out_.idle.push_back({device_, from, to, kind, before});
  }

  const Program& program_;
  const TaskGraph& graph_;
  const TaskTimes& times_;
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
  IdleReader reader(program, graph, times, metrics);
  std::vector<bool> works(graph.devices.size(), false);
  for (std::uint32_t lane = 0; lane < graph.lanes.size(); ++lane) {
    if (graph.lanes[lane].kind != LaneKind::compute) continue;
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

std::vector<Time> step_ends(const Program& program, const TaskGraph& graph,
                            const TaskTimes& times) {
  std::vector<Time> ends(static_cast<std::size_t>(program.steps));
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    std::uint32_t m = op.microbatch;
    if (!counts_microbatches(op.kind)) {
      const auto group = static_cast<std::uint32_t>(microbatches_per_update(program, op.stage));
      m = std::min((m + 1) * group, program.total_microbatches()) - 1;
    }
    Time& end = ends[m / static_cast<std::uint32_t>(program.microbatches)];
    end = std::max(end, times.available[task]);
  }
  return ends;
}

}  // namespace stageline
