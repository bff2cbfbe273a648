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

#include <cstdint>
#include <optional>
#include <random>

#include "schedulers/parts/list_schedule.hpp"
#include "schedulers/search/order_times.hpp"

namespace stageline {

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

  /// The times of an order with I and W apart, by the list scheduler's rules of time. Empty where
  /// it takes more than the limit or never finishes. O(ops).
  std::optional<StepTimes> times(const StepLists& lists);
  /// The same, with the longest span of a device that starts at once: messages that arrive later
  /// make neither it nor the makespan shorter.
  std::optional<StepTimes> times_from_begin(const StepLists& lists);

  /// The best order found from `lists`, which times() accepts, in `tries` tries of O(ops) each,
  /// fewer where none helps for long or `bound` is met. Another seed, other tries.
  StepLists climb(const StepLists& lists, std::int64_t tries, Time bound, std::uint32_t seed = 1);

 private:
  using Node = OrderTimes::Node;
  using Value = OrderTimes::Value;

  struct Held {
    std::int64_t limited = 0;  // more behind an op than before, of what is limited
    std::int64_t bytes = 0;    // and of whole stashes
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

  const OrderTimes::StageOp& op(Node node) const { return times_.op(node); }
  const Held& held_by(Node node) const { return held_[times_.stage_op_of(node)]; }
  bool keeps_limit(std::size_t device) const;
  bool run(const StepLists& lists);
  void trace();
  bool must_precede(Node before, Node after) const;
  std::optional<Move> draw();
  void apply(Move move);
  bool fit(std::size_t device);

  bool for_span_;
  OrderTimes times_;
  std::vector<std::int64_t> most_;  // by device; no limit where negative
  StashRoom room_;
  std::vector<Held> held_;            // by stage and kind
  std::vector<Step> path_;            // the latest first
  std::vector<Node> list_;            // a device's, with a move
  std::vector<std::uint32_t> marks_;  // by node: equal to mark_ where it has been passed
  std::uint32_t mark_ = 0;
  std::mt19937 random_;
};

}  // namespace stageline
