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
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/op.hpp"
#include "sim/task_graph.hpp"
#include "sim/units.hpp"

namespace stageline {

struct EventGraph {
  struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t rounds = 0;  // `to` waits for the `from` of so many rounds ago
    Time time{};               // from the start of `from` to the earliest start of `to`
    friend auto operator<=>(const Edge&, const Edge&) = default;
  };
  std::vector<Op> op;               // of one round, as they stand in the middle of the run
  std::vector<std::uint16_t> lane;  // parallel to `op`: index into the task graph's lanes
  std::vector<Time> duration;       // parallel to `op`
  std::vector<Edge> edges;
};

/// The event graph of a run of `microbatches` micro-batches, `round` of which make a round (all
/// replicas once; or a flushed step). Looks at three rounds in the middle; nothing when they are
/// not alike, or when there are fewer than seven. Of tasks that share a resource each waits for the
/// one that `times` shows before it: that order is taken as given.
std::optional<EventGraph> event_graph(const TaskGraph& graph, const TaskTimes& times,
                                      int microbatches, int round);

/// `time` for every `rounds` rounds, exactly; `cycle`: the ops in whose waiting for each other that
/// lies, in order, the last of which the first waits for.
struct Period {
  Time time{};
  std::int64_t rounds = 1;
  std::vector<Op> cycle;
};

/// The maximum cycle ratio: Howard's policy iteration (Boost.Graph) in floating point, the cycle
/// summed in integers and improved until no cycle has a larger ratio. Every cycle of the graph has
/// at least one round. A graph without cycles has the period 0 and no cycle.
Period period_of(const EventGraph& graph);

}  // namespace stageline
