// The times of a task graph as spans by lane.
#include "sim/timeline.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "sim/engine.hpp"
#include "sim/rules.hpp"

namespace stageline {
namespace {

bool starts_sooner(const Span& a, const Span& b) { return a.start < b.start; }

bool starts_sooner_or_precedes(const Span& a, const Span& b) {
  return a.start != b.start ? a.start < b.start : a.op < b.op;
}

// Sorts a receive lane. Its spans come from a few senders, each in order, so they part into a few
// ascending piles (patience sorting); the first pile stays in place, the others are merged into it.
// O(spans × piles) comparisons. The buffers are kept from lane to lane.
class PileSorter {
 public:
  void sort(Spans& spans) {
    const auto disorder =
        std::is_sorted_until(spans.begin(), spans.end(), starts_sooner_or_precedes);
    if (disorder == spans.end()) return;
    const auto sorted = static_cast<std::size_t>(disorder - spans.begin());
    if (!part(spans, sorted)) {
      std::sort(spans.begin(), spans.end(), starts_sooner_or_precedes);
    }
  }

 private:
  static constexpr std::size_t most_piles = 8;  // beside the first

  // Returns false, with `spans` a permutation of what they were, where it takes too many piles.
  bool part(Spans& spans, std::size_t sorted) {
    for (auto& pile : piles_) pile.clear();
    std::size_t kept = sorted;
    bool few = true;
    for (std::size_t i = sorted; i < spans.size(); ++i) {
      const Span span = spans[i];
      if (!starts_sooner_or_precedes(span, spans[kept - 1])) {
        spans[kept++] = span;
        continue;
      }
      std::size_t pile = 0;
      while (pile + 1 < most_piles && !piles_[pile].empty() &&
             starts_sooner_or_precedes(span, piles_[pile].back())) {
        ++pile;
      }
      few = few && (piles_[pile].empty() || !starts_sooner_or_precedes(span, piles_[pile].back()));
      piles_[pile].push_back(span);
    }
    for (const auto& pile : piles_) {
      if (few) {
        merge(spans, kept, pile);
      } else {
        std::copy(pile.begin(), pile.end(), spans.begin() + static_cast<std::ptrdiff_t>(kept));
      }
      kept += pile.size();
    }
    return few;
  }

  // From the back: `spans` has room for the pile behind its first `kept`, which are in order.
  static void merge(Spans& spans, std::size_t kept, const std::vector<Span>& pile) {
    Span* const first = spans.data();
    const Span* from = first + kept;
    Span* to = first + kept + pile.size();
    for (auto span = pile.rbegin(); span != pile.rend(); ++span) {
      while (from != first && starts_sooner_or_precedes(*span, from[-1])) *--to = *--from;
      *--to = *span;
    }
  }

  std::array<std::vector<Span>, most_piles> piles_;
};

// The receive lane and the RECV of every SEND, looked up by the SEND's kind, stage and part.
class Deliveries {
 public:
  explicit Deliveries(const Program& program) : places_(program.placement.stage) {
    const StageGraph graph = stage_graph(program);
    for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
      const OpKind send = send_of(static_cast<Cargo>(cargo));
      auto& first = first_[static_cast<std::size_t>(send)];
      for (std::size_t stage = 0; stage < graph.sends[cargo].size(); ++stage) {
        first.push_back(static_cast<std::uint32_t>(all_.size()));
        for (std::size_t part = 0; part < graph.sends[cargo][stage].size(); ++part) {
          Op op;
          op.kind = send;
          op.stage = static_cast<std::uint16_t>(stage);
          op.part = static_cast<std::uint8_t>(part & 0x7f);
          const Wire& way = wire(graph, static_cast<Cargo>(cargo), wire_of(graph, op));
          Delivery delivery{other_end(graph, op), way.to};
          if (way.to < 0 && home(delivery.receive).size() == 1) {
            delivery.device = home(delivery.receive)[0];
          }
          all_.push_back(delivery);
        }
      }
    }
  }

  bool is_send(OpKind kind) const { return !first_[static_cast<std::size_t>(kind)].empty(); }

  struct Arrival {
    Op receive;
    std::size_t lane;  // index into Timeline::lanes
  };
  Arrival of(Op send) const {
    const auto& first = first_[static_cast<std::size_t>(send.kind)];
    const Delivery& delivery = all_[first[send.stage] + send.part];
    Arrival arrival{delivery.receive, 0};
    arrival.receive.microbatch = send.microbatch;
    int device = delivery.device;
    if (device < 0) {
      const std::vector<int>& replicas = home(delivery.receive);
      device = replicas[send.microbatch % replicas.size()];
    }
    arrival.lane =
        static_cast<std::size_t>(device) * lane_kinds + static_cast<std::size_t>(LaneKind::receive);
    return arrival;
  }

 private:
  struct Delivery {
    Op receive;       // of micro-batch 0
    int device = -1;  // -1: that of the replica which the micro-batch picks
  };

  const std::vector<int>& home(Op op) const { return places_[op.stage].replicas; }

  const std::vector<StagePlace>& places_;
  std::vector<Delivery> all_;
  std::array<std::vector<std::uint32_t>, op_kinds> first_;  // by kind and stage, into all_
};

// Lanes with room for so many spans each, in one block.
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

}  // namespace

Time makespan(const Timeline& timeline) {
  Time last{};
  for (const auto& lane : timeline.lanes) {
    for (const Span& span : lane) last = std::max(last, span.end);
  }
  return last;
}

Timeline timeline_of(const Program& program, const TaskGraph& graph, const TaskTimes& times) {
  const Deliveries deliveries(program);
  std::vector<std::size_t> lane_of(graph.lanes.size());  // index into Timeline::lanes
  std::vector<std::size_t> sizes(graph.devices.size() * lane_kinds);
  std::vector<bool> batched(sizes.size());  // several lanes of the graph in one
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    const std::size_t at = static_cast<std::size_t>(graph.lanes[lane].device) * lane_kinds +
                           static_cast<std::size_t>(graph.lanes[lane].kind);
    lane_of[lane] = at;
    if (graph.lanes[lane].kind == LaneKind::receive) continue;
    batched[at] = sizes[at] > 0;
    sizes[at] += graph.lane_begin[lane + 1] - graph.lane_begin[lane];
  }
  for (const Op op : graph.op) {
    if (deliveries.is_send(op.kind)) ++sizes[deliveries.of(op).lane];
  }
  for (std::uint32_t task = 0; task < graph.partner.size(); ++task) {
    if (graph.op[task].overlapped) ++sizes[lane_of[graph.lane[task]]];
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
    Spans& spans = timeline.lanes[lane_of[graph.lane[task]]];
    append(spans, op, start, end);
    if (op.overlapped) append(spans, graph.partner[task], start, end);
    if (!deliveries.is_send(op.kind)) continue;
    const bool blocks = task + 1 < graph.tasks() && is_receive(graph.op[task + 1].kind);
    const Time late = blocks ? graph.duration[task + 1] : lag_of_path;
    const auto [receive, at] = deliveries.of(op);
    append(timeline.lanes[at], receive, start + late, end + late);
  }
  PileSorter sorter;
  for (std::size_t at = 0; at < timeline.lanes.size(); ++at) {
    Spans& spans = timeline.lanes[at];
    if (static_cast<LaneKind>(at % lane_kinds) == LaneKind::receive) sorter.sort(spans);
    if (batched[at]) std::stable_sort(spans.begin(), spans.end(), starts_sooner);
  }
  return timeline;
}

}  // namespace stageline
