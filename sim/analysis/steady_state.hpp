// The steady state of a program that repeats, computed without simulating up to it: its event graph
// (nodes are the tasks of one round; an edge has the number of rounds between a task and one that
// it waits for), and the cycle of that graph that decides the pace.
//
//   0F ──► 1F ──► 1B ──► 0B        a cycle of durations 1 + 1 + 2 + 2 over 2 rounds: no pipeline
//    ▲  next F after the B of 2 rounds ago (in the lane)       │       of that order is faster
//    └─────────────────────── 2 ──────────────────────────────┘       than one round in 3
//
// The largest ratio of time to rounds over all cycles is the period (Reiter 1968, doi
// 10.1145/321479.321485; in signal processing, the iteration bound).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/engine.hpp"
#include "sim/op.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

/// Why one task waits for another.
enum class Wait : std::uint8_t {
  need,      // it reads the result
  lane,      // its turn in the lane is next
  resource,  // its turn on a shared link is next
};

std::string_view name(Wait wait);

struct EventGraph {
  struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t rounds = 0;  // `to` waits for the `from` of this many rounds ago
    Time time{};               // from the start of `from` to the earliest start of `to`
    Wait wait = Wait::need;
    friend bool operator==(const Edge&, const Edge&) = default;
    // Field by field; durations have no <=> in every library.
    friend bool operator<(const Edge& a, const Edge& b) {
      return std::tie(a.from, a.to, a.rounds, a.time, a.wait) <
             std::tie(b.from, b.to, b.rounds, b.time, b.wait);
    }
  };
  std::vector<Op> op;               // of one round in the middle of the run
  std::vector<Lane> lane;           // parallel to `op`
  std::vector<std::uint16_t> turn;  // parallel to `op`: index into the task graph's lanes
  std::vector<std::uint16_t> path;  // parallel to `op`: index into the task graph's paths
  std::vector<Time> duration;       // parallel to `op`
  std::vector<Edge> edges;          // an edge of 0 rounds goes from a lower node to a higher one
};

/// The event graph of a run of `microbatches` micro-batches, `round` of which make a round (one per
/// replica, or a flushed step). Compares three rounds in the middle (two, if there are fewer than
/// seven). Nothing if they differ, if there are fewer than three, or if the turns of a lane are not
/// one cycle through a round (in the middle of a long flush F follows F and B follows B, and no F
/// follows a B); so no period is shorter than a lane's work. Tasks that share a resource wait for
/// one another in the order of `times`, which is taken as given; under fair sharing none waits, and
/// the durations are those of the run. O(tasks), plus sorting if resources are shared.
std::optional<EventGraph> event_graph(const TaskGraph& graph, const TaskTimes& times,
                                      int microbatches, int round);

/// The same order if no message or reduction took time, and none waited for a link.
EventGraph with_free_links(EventGraph events);

/// One op of a cycle, and how the next op waits for it.
struct Turn {
  Op op;
  Lane lane;
  Wait wait = Wait::need;
  std::uint32_t rounds = 0;  // the next op is this many rounds later
  Time time{};               // from its start to the start of the next op
};

/// Exactly `time` for every `rounds` rounds, and the cycle of ops that wait for each other and
/// cause it: each waits for the one before it, the first for the last.
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
