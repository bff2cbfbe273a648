// The steady state of a program that repeats, without waiting for it: its event graph, whose nodes
// are the tasks of one round and whose edges say how many rounds lie between a task and one that it
// waits for; and the cycle of that graph that decides the pace.
//
//   0F ──► 1F ──► 1B ──► 0B        a cycle of durations 1 + 1 + 2 + 2 over 2 rounds: no pipeline
//    ▲  next F behind the B of 2 rounds ago (in the lane)      │       of that order is faster
//    └─────────────────────── 2 ──────────────────────────────┘       than one round in 3
//
// The largest ratio of time to rounds over all cycles is the period (Reiter 1968, doi
// 10.1145/321479.321485; in signal processing, the iteration bound).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/engine.hpp"
#include "sim/op.hpp"
#include "sim/task_graph.hpp"
#include "sim/units.hpp"

namespace stageline {

/// Why one task waits for another.
enum class Wait : std::uint8_t {
  need,      // for what it makes
  lane,      // for its turn in the lane
  resource,  // for its turn on a link that both use
};

std::string_view name(Wait wait);

struct EventGraph {
  struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t rounds = 0;  // `to` waits for the `from` of so many rounds ago
    Time time{};               // from the start of `from` to the earliest start of `to`
    Wait wait = Wait::need;
    friend auto operator<=>(const Edge&, const Edge&) = default;
  };
  std::vector<Op> op;               // of one round, as they stand in the middle of the run
  std::vector<Lane> lane;           // parallel to `op`
  std::vector<std::uint16_t> turn;  // parallel to `op`: index into the task graph's lanes
  std::vector<std::uint16_t> path;  // parallel to `op`: index into the task graph's paths
  std::vector<Time> duration;       // parallel to `op`
  std::vector<Edge> edges;          // those of 0 rounds go from a lower node to a higher one
};

/// The event graph of a run of `microbatches` micro-batches, `round` of which make a round (all
/// replicas once; or a flushed step). Looks at three rounds in the middle (at two, when there are
/// fewer than seven); nothing when they are not alike, or when there are fewer than three, or when
/// the turns of a lane do not make one circle, once around a round (the middle of a long flush: F
/// behind F and B behind B, and no F behind a B). So no period is shorter than a lane's work. Of
/// tasks that share a resource each waits for the one that `times` shows before it: that order is
/// taken as given. O(tasks), and sorting where resources are shared.
std::optional<EventGraph> event_graph(const TaskGraph& graph, const TaskTimes& times,
                                      int microbatches, int round);

/// The same order as if every message and reduction took no time, and nobody waited for a link.
EventGraph with_free_links(EventGraph events);

/// One op of a cycle, and how the next one waits for it.
struct Turn {
  Op op;
  Lane lane;
  Wait wait = Wait::need;
  std::uint32_t rounds = 0;  // the next one is of so many rounds later
  Time time{};               // from its start to the next one's
};

/// `time` for every `rounds` rounds, exactly; `cycle`: the ops in whose waiting for each other that
/// lies, in order, the first of which waits for the last.
struct Period {
  Time time{};
  std::int64_t rounds = 1;
  std::vector<Turn> cycle;
};

/// The maximum cycle ratio: Howard's policy iteration (Boost.Graph) in floating point, the cycle
/// summed in integers and improved until no cycle has a larger ratio. Every cycle of the graph has
/// at least one round. A graph without cycles has the period 0 and no cycle.
Period period_of(const EventGraph& graph);

}  // namespace stageline
