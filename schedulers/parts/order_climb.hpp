// Local search on the order of one step: an op on the critical path goes before or behind its
// neighbours on the device, and the order stays if it is no worse than it was some tries ago (late
// acceptance hill climbing, Burke & Bykov 2017, doi 10.1016/j.ejor.2016.07.012; the moves are those
// of job shops, Nowicki & Smutnicki 1996, doi 10.1287/mnsc.42.6.797).
//
//      gpu0   F0 F1 I0 W0 I1 W1         I1 ends on the critical path, behind W0: it goes before
//      gpu0   F0 F1 I0 I1 W0 W1         W0, if the limit still has room for the F's that follow
//
// Tries are drawn from a fixed seed: the same input has the same outcome.
#pragma once

#include <optional>
#include <random>

#include "schedulers/parts/list_schedule.hpp"
#include "schedulers/parts/stage_times.hpp"

namespace stageline {

/// When a step is done: the longest device span, first start to last end, and the end of compute.
struct StepTimes {
  Time span{};
  Time makespan{};
};

/// Most bytes of stashes, by device, beside a limit in stashes: each whole until its W has ended.
/// Empty: any.
struct StashRoom {
  std::vector<std::int64_t> bytes;
};

class OrderClimb {
 public:
  /// To shorten the longest span (`for_span`), or the makespan. I and W are apart; stages have one
  /// device each.
  OrderClimb(const Problem& problem, const StashLimit& limit, StashRoom room, bool for_span);

  /// Of an order with I and W apart, by the list scheduler's rules of time; nothing where it takes
  /// more than the limit or never finishes. O(ops).
  std::optional<StepTimes> times(const StepLists& lists);

  /// The best order found from `lists`, which times() accepts, in `tries` tries of O(ops) each,
  /// fewer where none helps for long or `bound` is met.
  StepLists climb(const StepLists& lists, std::int64_t tries, Time bound);

 private:
  using Node = std::uint32_t;  // (stage, micro-batch, kind) counted through
  __extension__ using Wide = __int128;

  struct Fixed {
    Time duration{};
    std::int64_t holds = 0;  // more behind it than before, of what is limited
    std::int64_t bytes = 0;  // and of whole stashes
    std::uint32_t device = 0;
    std::uint32_t stage = 0;
    OpKind kind = OpKind::forward;
  };
  struct Run {
    Time ready{};
    Time start{};
    Node cause = 0;        // of `ready`; itself: nothing
    std::uint32_t at = 0;  // position on its device
    int missing = 0;       // inputs
  };
  struct Step {  // of the critical path
    Node node = 0;
    std::uint32_t at = 0;
  };
  struct Move {
    std::size_t device = 0;
    std::size_t from = 0;
    std::size_t to = 0;
  };
  // What is to be short, and of orders that are alike in that, the sum over devices.
  struct Value {
    Time longest{};
    Wide sum{};
    friend bool operator==(const Value&, const Value&) = default;
    friend bool operator<(const Value& a, const Value& b) {
      return a.longest != b.longest ? a.longest < b.longest : a.sum < b.sum;
    }
  };

  void read(const StepLists& lists);
  StepLists written(const std::vector<std::vector<Node>>& order) const;
  bool keeps_limit(std::size_t device) const;
  bool run();
  void pass_on(Node node, std::size_t device);
  void arrive(Node node, Time at, Node from, std::size_t device);
  Time end_of(Node node) const { return runs_[node].start + fixed_[node].duration; }
  Value value() const;
  void trace();
  bool must_precede(Node before, Node after) const;
  std::optional<Move> draw();
  void apply(Move move);
  bool fit(std::size_t device);

  std::size_t count_;  // micro-batches
  bool for_span_;
  std::vector<StageTimes> stages_;
  std::vector<std::int64_t> most_;  // by device; no limit where negative
  StashRoom room_;
  std::vector<Fixed> fixed_;  // by node
  std::vector<Run> blank_;    // by node
  std::vector<Run> runs_;     // by node
  std::vector<std::vector<Node>> order_;
  std::vector<std::size_t> next_;  // by device
  std::vector<Time> free_;         // by device
  std::vector<Time> link_;         // by device: its sends so far are over
  std::vector<std::size_t> waiting_;
  std::vector<Step> path_;            // the latest first
  std::vector<Node> saved_;           // a device's order
  std::vector<std::uint32_t> marks_;  // by node: equal to mark_ where it has been passed
  std::uint32_t mark_ = 0;
  std::mt19937 random_;
};

}  // namespace stageline
