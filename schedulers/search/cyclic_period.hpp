// How long a round takes whose ops have a given order on each device.
#pragma once

#include <optional>
#include <vector>

#include "schedulers/parts/stage_times.hpp"
#include "schedulers/search/cyclic_round.hpp"

namespace stageline {

/// The times of a cyclic order.
struct RoundTimes {
  Time period{};   // to the picosecond above
  Time through{};  // from the start of a micro-batch's first F to the end of its last I or W
};

class RoundClock {
 public:
  /// Rounds have so many micro-batches.
  RoundClock(const std::vector<StageTimes>& stages, int each);

  /// Nothing where ops wait for each other in a circle, or the period is above `most`.
  /// O(ops) for each pass over the ops; few passes where ops are in the order of their starts.
  std::optional<RoundTimes> times(const CyclicRound& round, Time least, Time most);

  /// The time of an op of a stage.
  Time work(OpKind kind, int stage) const;

  std::int64_t looked_at() const { return looked_at_; }  // edges, so far

 private:
  struct Edge {
    int from = 0;
    int to = 0;
    Time time{};     // from start to start
    int rounds = 0;  // `to` is for micro-batches of so many rounds later
  };
  int node(OpKind kind, int stage, int number) const;
  int node(const CyclicOp& op) const { return node(op.kind, op.stage, op.number); }
  std::optional<Edge> cycle(const std::vector<int>& parents);

  const std::vector<StageTimes>& stages_;
  int each_;
  std::vector<Edge> ways_;   // between stages, and from F to I to W
  std::vector<Edge> edges_;  // these, and along the devices
  std::vector<Time> starts_;
  std::vector<int> parent_;  // by op, the edge that set its start; -1: none
  std::int64_t looked_at_ = 0;
};

}  // namespace stageline
