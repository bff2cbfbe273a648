// The times of a task graph as spans by lane.
#include "sim/timeline.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>

#include "sim/base/index.hpp"
#include "sim/engine.hpp"
#include "sim/pile_sorter.hpp"
#include "sim/rules.hpp"
#include "sim/wire_table.hpp"

namespace stageline {
namespace {

std::size_t index_of(int device, LaneKind kind) {
  return as_size(device) * lane_kinds + as_size(kind);
}

// The RECV of every SEND, and the lane that it is in.
class Deliveries {
 public:
  explicit Deliveries(const Program& program) : Deliveries(program, stage_graph(program)) {}

  struct Arrival {
    Op receive;
    std::size_t lane;  // index into Timeline::lanes
  };
  Arrival of(Op send) const {
    const Delivery& delivery = table_[send];
    Op receive = delivery.receive;
    receive.microbatch = send.microbatch;
    int device = delivery.device;
    if (device < 0) {
      const std::vector<int>& replicas = places_[receive.stage].replicas;
      device = replicas[send.microbatch % replicas.size()];
    }
    return {receive, index_of(device, LaneKind::receive)};
  }

 private:
  struct Delivery {
    Op receive;       // of micro-batch 0
    int device = -1;  // -1: that of the micro-batch's replica
  };

  Deliveries(const Program& program, const StageGraph& graph)
      : places_(program.placement.stage), table_(graph, [&](Op message) {
          if (!is_send(message.kind)) return Delivery{};
          const Wire& way = wire(graph, *cargo_of(message.kind), wire_of(graph, message));
          const Op receive = other_end(graph, message);
          const std::vector<int>& replicas = places_[receive.stage].replicas;
          return Delivery{receive, way.to < 0 && replicas.size() == 1 ? replicas[0] : way.to};
        }) {}

  const std::vector<StagePlace>& places_;
  WireTable<Delivery> table_;
};

// Empty lanes with room for the given numbers of spans, in one block.
std::vector<Spans> lanes_with_room(const std::vector<std::size_t>& sizes) {
  std::size_t bytes = 0;
  for (const std::size_t size : sizes) bytes += Block::room_for(size * sizeof(Span));
  const auto block = std::make_shared<Block>(bytes);
  std::vector<Spans> lanes;
  lanes.reserve(sizes.size());
  for (const std::size_t size : sizes) {
    lanes.emplace_back(BlockAllocator<Span>(block));
    lanes.back().reserve(size);
  }
  return lanes;
}

// Lanes grow in turns, so that the cache line that a lane needs next can be fetched ahead.
void append(Spans& spans, Op op, Time start, Time end) {
  // Field by field: a temporary would be written in parts and read back as a whole, which stalls.
  Span& span = spans.emplace_back();
  span.op = op;
  span.start = start;
  span.end = end;
  __builtin_prefetch(spans.data() + spans.size() + 4, 1);
}

bool is_receive(OpKind kind) { return lane_of(kind) == LaneKind::receive; }

bool starts_sooner(const Span& a, const Span& b) { return a.start < b.start; }

}  // namespace

Time makespan(const Timeline& timeline) {
  Time last{};
  for (const auto& lane : timeline.lanes) {
    for (const Span& span : lane) last = std::max(last, span.end);
  }
  return last;
}

Timeline timeline_of(const Program& program, const TaskGraph& graph, const TaskTimes& times) {
  std::optional<Deliveries> deliveries;                            // only if there are messages
  std::vector<std::size_t> index_in_timeline(graph.lanes.size());  // index into Timeline::lanes
  std::vector<std::size_t> sizes(graph.devices.size() * lane_kinds);
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    const std::size_t at = index_of(graph.lanes[lane].device, graph.lanes[lane].kind);
    index_in_timeline[lane] = at;
    if (graph.lanes[lane].kind == LaneKind::receive) continue;
    sizes[at] += graph.lane_begin[lane + 1] - graph.lane_begin[lane];
  }
  for (const Op op : graph.op) {
    if (!is_send(op.kind)) continue;
    if (!deliveries) deliveries.emplace(program);
    ++sizes[deliveries->of(op).lane];
  }
  for (std::uint32_t task = 0; task < graph.partner.size(); ++task) {
    if (graph.op[task].overlapped) ++sizes[index_in_timeline[graph.lane[task]]];
  }
  Timeline timeline{graph.devices, lanes_with_room(sizes)};
  std::vector<Time> lag;
  lag.reserve(graph.paths.size());
  for (const Path& path : graph.paths) lag.push_back(path.lag);
  // A RECV gets its span with its SEND. A message that blocks has its latency in a task of its own,
  // the RECV, right behind it.
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    if (is_receive(op.kind)) continue;
    const Time lag_of_path = lag[graph.path_of[task]];
    const Time end = times.available[task] - lag_of_path;
    const Time start = end - graph.duration[task];
    Spans& spans = timeline.lanes[index_in_timeline[graph.lane[task]]];
    append(spans, op, start, end);
    if (op.overlapped) append(spans, graph.partner[task], start, end);
    if (!is_send(op.kind)) continue;
    const bool blocks = task + 1 < graph.tasks() && is_receive(graph.op[task + 1].kind);
    const Time late = blocks ? graph.duration[task + 1] : lag_of_path;
    const auto [receive, at] = deliveries->of(op);
    append(timeline.lanes[at], receive, start + late, end + late);
  }
  PileSorter sorter;
  for (std::size_t at = 0; at < timeline.lanes.size(); ++at) {
    Spans& spans = timeline.lanes[at];
    const auto kind = static_cast<LaneKind>(at % lane_kinds);
    if (kind == LaneKind::receive) sorter.sort(spans);
    // The sends of one batch are from several lanes of the graph.
    if (kind == LaneKind::send && !std::is_sorted(spans.begin(), spans.end(), starts_sooner)) {
      std::stable_sort(spans.begin(), spans.end(), starts_sooner);
    }
  }
  return timeline;
}

}  // namespace stageline
