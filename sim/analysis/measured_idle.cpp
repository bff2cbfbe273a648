// Lowers a program that ran to a task graph with its measured times.
#include "sim/analysis/measured_idle.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/costs.hpp"
#include "sim/lower/passes.hpp"

namespace stageline {
namespace {

std::map<Op, Span> compute_spans(const Timeline& timeline) {
  std::map<Op, Span> spans;
  for (std::size_t d = 0; d < timeline.devices.size(); ++d) {
    for (const Span& span : timeline.lane(static_cast<int>(d), LaneKind::compute)) {
      spans.emplace(plain(span.op), span);
    }
  }
  return spans;
}

// Overlapped pairs whose ops have a time each are two ops.
Program with_divided_pairs(Program program, const std::map<Op, Span>& spans) {
  for (auto& list : program.ops) {
    for (Op& op : list) {
      if (op.overlapped == 0) continue;
      const auto at = spans.find(plain(op));
      if (at != spans.end() && at->second.op.overlapped == 0) op.overlapped = 0;
    }
  }
  return program;
}

// The transit of the message that the SEND sends.
Time transit_of(const std::map<Op, Time>& transit, Op send) {
  const bool forward = send.kind == OpKind::send_forward;
  const int stage = forward ? send.stage + 1 : send.stage - 1;
  for (const OpKind kind : {OpKind::forward, OpKind::backward, OpKind::input_grad}) {
    if ((kind == OpKind::forward) != forward || stage < 0) continue;
    const auto at = transit.find(op_of(kind, stage, send.microbatch));
    if (at != transit.end()) return at->second;
  }
  return Time{};
}

class Measured {
 public:
  Measured(const Program& program, TaskGraph& graph, const std::map<Op, Span>& spans,
           const std::map<Op, Time>& transit)
      : graph_(graph),
        spans_(spans),
        transit_(transit),
        free_(graph.lanes.size()),
        late_(graph.devices.size()) {
    late_stretches_.resize(graph.devices.size());
    const auto messages =
        static_cast<std::size_t>(std::count_if(graph.op.begin(), graph.op.end(), [](Op op) {
          return class_of(op.kind) == OpClass::message;
        }));
    constexpr std::size_t most = 65'000;
    if (messages > most) {
      throw UsageError(
          fmt::format("the run has {} messages; idle time is explained for up to {}: "
                      "profile fewer than its {} steps",
                      messages, most, program.steps));
    }
    times_.available.resize(graph.tasks());
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) place(task);
  }

  const TaskTimes& times() const { return times_; }
  const std::vector<Time>& late() const { return late_; }
  const std::vector<std::vector<TimeStretch>>& late_stretches() const { return late_stretches_; }

 private:
  void place(std::uint32_t task) {
    if (class_of(graph_.op[task].kind) == OpClass::message) {
      place_message(task);
    } else {
      place_op(task);
    }
  }

  // Ops of one lane follow each other, also where their ranges overlap on the device.
  void place_op(std::uint32_t task) {
    Time& free = free_[graph_.lane[task]];
    const auto at = spans_.find(plain(graph_.op[task]));
    const Time start = at == spans_.end() ? free : std::max(free, at->second.start);
    const Time end = at == spans_.end() ? free : std::max(start, at->second.end);
    const Time ready = std::max(free, inputs_of(task));
    if (ready < start) {
      nth(late_, graph_.lanes[graph_.lane[task]].device) += start - ready;
      nth(late_stretches_, graph_.lanes[graph_.lane[task]].device).push_back({ready, start});
    }
    graph_.duration[task] = end - start;
    graph_.path_of[task] = 0;
    times_.available[task] = free = end;
  }

  // A lag, so that messages of one lane do not wait for each other: each has its own measured time.
  void place_message(std::uint32_t task) {
    Path path;
    path.lag = transit_of(transit_, graph_.op[task]);
    graph_.duration[task] = Time{};
    graph_.path_of[task] = static_cast<std::uint16_t>(graph_.paths.size());
    times_.available[task] = inputs_of(task) + path.lag;
    graph_.paths.push_back(std::move(path));
  }

  // When all that the task needs of other lanes was there.
  Time inputs_of(std::uint32_t task) const {
    Time ready{};
    for (std::uint32_t n = graph_.need_begin[task]; n != graph_.need_begin[task + 1]; ++n) {
      ready = std::max(ready, times_.available[graph_.need[n]]);
    }
    return ready;
  }

  TaskGraph& graph_;
  const std::map<Op, Span>& spans_;
  const std::map<Op, Time>& transit_;
  std::vector<Time> free_;  // by lane
  std::vector<Time> late_;  // by device
  std::vector<std::vector<TimeStretch>> late_stretches_;
  TaskTimes times_;
};

}  // namespace

MeasuredIdle measured_idle(const Program& program, const Timeline& timeline,
                           const std::map<Op, Time>& transit) {
  const std::map<Op, Span> spans = compute_spans(timeline);
  // Messages take some time here, so that each is a task; their times are then the measured ones.
  constexpr Time some{1};
  const Costs costs = uniform_costs(program.stages(), static_cast<int>(program.devices.size()),
                                    some, some, some, some);
  const Program ran = complete(with_divided_pairs(program, spans), costs);
  TaskGraph graph = compile(ran, costs);
  const Measured measured(ran, graph, spans, transit);
  MeasuredIdle idle = measured_metrics_of(ran, graph, measured.times());
  idle.late = measured.late();
  idle.late_stretches = measured.late_stretches();
  return idle;
}

}  // namespace stageline
