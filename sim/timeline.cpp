#include "sim/timeline.hpp"

#include <algorithm>

#include "sim/engine.hpp"
#include "sim/rules.hpp"

namespace stageline {

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
  // Receives of one device come from several senders; its lane is sorted below.
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Lane lane = graph.lanes[graph.lane[task]];
    const Time end = end_of(graph, times, task);
    const Time start = end - graph.duration[task];
    Op op = graph.op[task];
    auto& spans = timeline.lanes[static_cast<std::size_t>(lane.device) * lane_kinds +
                                 static_cast<std::size_t>(lane.kind)];
    spans.push_back({op, start, end});
    if (op.overlapped) spans.push_back({graph.partner[task], start, end});
    if (!is_send(op.kind)) continue;
    const Cargo cargo = *cargo_of(op.kind);
    const int number = wire_of(stages, op);
    const Wire& way = wire(stages, cargo, number);
    Op receive = op;
    receive.kind = receive_of(cargo);
    receive.stage = static_cast<std::uint16_t>(way.receiver);
    const auto& ways = stages.receives[static_cast<std::size_t>(cargo)][receive.stage];
    receive.part = static_cast<std::uint8_t>(
        (std::find(ways.begin(), ways.end(), number) - ways.begin()) & 0x7f);
    const int device = ends_of(program.placement, way, op.microbatch).to;
    const Time lag = times.available[task] - end;
    timeline
        .lanes[static_cast<std::size_t>(device) * lane_kinds +
               static_cast<std::size_t>(LaneKind::receive)]
        .push_back({receive, start + lag, end + lag});
  }
  for (std::size_t at = static_cast<std::size_t>(LaneKind::receive); at < timeline.lanes.size();
       at += lane_kinds) {
    auto& spans = timeline.lanes[at];
    const auto earlier = [](const Span& a, const Span& b) {
      return a.start != b.start ? a.start < b.start : a.op < b.op;
    };
    if (!std::is_sorted(spans.begin(), spans.end(), earlier)) {
      std::sort(spans.begin(), spans.end(), earlier);
    }
  }
  return timeline;
}

}  // namespace stageline
