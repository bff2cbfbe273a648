#include "sim/timeline.hpp"

#include <algorithm>

#include "sim/engine.hpp"
#include "sim/rules.hpp"

namespace stageline {
namespace {

bool is_receive(Op op) { return lane_of(op.kind) == LaneKind::receive; }

template <class Earlier>
void sort(std::vector<Span>& spans, Earlier earlier) {
  if (std::is_sorted(spans.begin(), spans.end(), earlier)) return;
  std::stable_sort(spans.begin(), spans.end(), earlier);
}

}  // namespace

Time makespan(const Timeline& timeline) {
  Time last{};
  for (const auto& lane : timeline.lanes) {
    for (const Span& span : lane) last = std::max(last, span.end);
  }
  return last;
}

Timeline timeline_of(const Program& program, const TaskGraph& graph, const TaskTimes& times) {
  const StageGraph stages = stage_graph(program);
  Timeline timeline;
  timeline.devices = graph.devices;
  timeline.lanes.resize(graph.devices.size() * lane_kinds);
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    const std::size_t at = static_cast<std::size_t>(graph.lanes[lane].device) * lane_kinds +
                           static_cast<std::size_t>(graph.lanes[lane].kind);
    timeline.lanes[at].reserve(graph.lane_begin[lane + 1] - graph.lane_begin[lane]);
  }
  // Receives of one device come from several senders, and sends of one batch start together: those
  // lanes are sorted below.
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    if (is_receive(graph.op[task])) continue;  // said with its SEND
    const Lane lane = graph.lanes[graph.lane[task]];
    const Time end = end_of(graph, times, task);
    const Time start = end - graph.duration[task];
    Op op = graph.op[task];
    auto& spans = timeline.lanes[static_cast<std::size_t>(lane.device) * lane_kinds +
                                 static_cast<std::size_t>(lane.kind)];
    spans.push_back({op, start, end});
    if (op.overlapped) spans.push_back({graph.partner[task], start, end});
    if (!is_send(op.kind)) continue;
    const Op receive = other_end(stages, op);
    const int device = device_of(stages, program.placement, receive);
    // Where it blocks, its latency is a task of its own, right behind it.
    const bool blocks = task + 1 < graph.tasks() && is_receive(graph.op[task + 1]);
    const Time lag = blocks ? graph.duration[task + 1] : times.available[task] - end;
    timeline
        .lanes[static_cast<std::size_t>(device) * lane_kinds +
               static_cast<std::size_t>(LaneKind::receive)]
        .push_back({receive, start + lag, end + lag});
  }
  for (std::size_t at = 0; at < timeline.lanes.size(); ++at) {
    auto& spans = timeline.lanes[at];
    const auto kind = static_cast<LaneKind>(at % lane_kinds);
    if (kind == LaneKind::receive) {
      sort(spans, [](const Span& a, const Span& b) {
        return a.start != b.start ? a.start < b.start : a.op < b.op;
      });
    } else if (kind == LaneKind::send) {
      sort(spans, [](const Span& a, const Span& b) { return a.start < b.start; });
    }
  }
  return timeline;
}

}  // namespace stageline
