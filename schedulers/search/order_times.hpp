// When the ops of an order run, by the list scheduler's rules of time
// (schedulers/parts/list_schedule.hpp), and again after a change of one device's list.
//
// Where the stages are a chain, a change costs only what it reaches. The order in which the ops
// were timed is kept: those between the first and the last op that have moved are sorted again, and
// of the later ones only those are timed anew whose device, link or input is free at another
// moment. A change that makes the step too long is seen as soon as an op starts too late for the
// longest way that is behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedulers/parts/list_schedule.hpp"
#include "schedulers/parts/stage_times.hpp"

namespace stageline {

/// When a step is done: the longest device span, first start to last end, and the end of compute.
struct StepTimes {
  Time span{};
  Time makespan{};
};

class OrderTimes {
 public:
  using Node = std::uint32_t;  // (stage, micro-batch, kind) counted through
  using NodeLists = std::vector<std::vector<Node>>;
  __extension__ using Wide = __int128;

  static constexpr Node none = 0xffffffff;

  /// What the ops of one stage and kind have in common. In a chain, `source` is the F or I whose
  /// message they need, and `target` the one that needs theirs; both of the first micro-batch.
  struct StageOp {
    Time duration{};
    Time wire{};     // of its message
    Time latency{};  // of its message
    Node first = 0;  // that of the first micro-batch
    Node source = none;
    Node target = none;
    std::uint32_t stage = 0;
    std::uint32_t device = 0;
    OpKind kind = OpKind::forward;
    bool over_a_link = false;
  };
  /// What is to be short, and of orders that are alike in that, the sum over devices.
  struct Value {
    Time longest{};
    Wide sum{};
    friend bool operator==(const Value&, const Value&) = default;
    friend bool operator<(const Value& a, const Value& b) {
      return a.longest != b.longest ? a.longest < b.longest : a.sum < b.sum;
    }
  };

  /// `for_span`: value() is that of the spans of the devices; else of their ends. I and W are
  /// apart; stages have one device each.
  OrderTimes(const Problem& problem, bool for_span);

  void read(const StepLists& lists);
  StepLists written(const NodeLists& order) const;

  const NodeLists& order() const { return order_; }

  std::size_t nodes() const { return number_.size(); }
  std::size_t stage_ops() const { return stage_ops_.size(); }
  std::size_t stage_op_of(Node node) const { return number_[node]; }
  const StageOp& op(Node node) const { return stage_ops_[number_[node]]; }
  const StageOp& stage_op(std::size_t number) const { return stage_ops_[number]; }

  /// Times the whole order. Whether it finishes. O(ops).
  bool run();
  /// Takes that list for the device, with the same ops in another order, and times the order again,
  /// which must be timed. False, and nothing changes, where it does not finish, or where value()
  /// would be longer than `most` and that is seen early.
  bool change(std::size_t device, const std::vector<Node>& list, Time most);
  /// Takes back the last change(), which was true.
  void undo();
  /// Times the order once more where a change that has been taken back has left it untimed.
  void restore();

  // The order must be timed:
  Value value() const;
  StepTimes step_times() const;
  Time start_of(Node node) const { return timed_[node].start; }
  Time end_of(Node node) const { return timed_[node].start + op(node).duration; }
  std::uint32_t position_of(Node node) const { return position_[node]; }
  /// The last input, where the op starts when it arrives.
  std::optional<Node> cause_of(Node node) const;

 private:
  struct Inputs {
    Time ready{};
    Node cause = 0;   // of `ready`; itself: nothing
    int missing = 0;  // in run()
  };
  struct Timed {
    Time start{};
    Time sent{};     // the device's messages so far are over
    Time arrives{};  // the op's own message, of a chain
    friend bool operator==(const Timed&, const Timed&) = default;
  };
  struct Earlier {  // the times before a change
    Node node = 0;
    Inputs inputs;
    Timed timed;
  };
  // The longest ways to the end of a device, less the begin of its span if that is what counts.
  struct Ways {
    Time from_start{};  // of the op
    Time from_link{};   // from the moment at which the link is free for it, if it sends
  };

  void add_stage(std::size_t stage);
  void pass_on(Node node, std::size_t device);
  void arrive(Node node, Time at, Node from, std::size_t device);

  Node source_of(Node node) const { return of_same_microbatch(node, op(node).source); }
  Node target_of(Node node) const { return of_same_microbatch(node, op(node).target); }
  Node of_same_microbatch(Node node, Node first) const {
    return first == none ? none : node - op(node).first + first;
  }
  Node ahead_of(Node node) const;  // on its device
  Node behind(Node node) const;    // on its device
  template <typename Visit>
  void each_before(Node node, const Visit& visit) const;
  template <typename Visit>
  void each_after(Node node, const Visit& visit) const;

  void number_positions();
  bool is_in_window(Node node) const { return place_[node] - begin_ < end_ - begin_; }
  bool sort_window();
  bool time_again(Node node);
  void time_window();
  bool time_later(Time most);
  void make_due(Node node);
  void swap_window();
  void take_back();
  void find_ways();
  Time begin_of(std::size_t device) const {
    return for_span_ ? start_of(order_[device].front()) : Time{};
  }

  Node count_;  // micro-batches
  bool for_span_;
  bool is_chain_ = true;
  std::vector<StageTimes> stages_;
  std::vector<StageOp> stage_ops_;     // by stage and kind
  std::vector<std::uint32_t> number_;  // by node: an index into these
  NodeLists order_;
  std::vector<Inputs> blank_;            // by node
  std::vector<Inputs> inputs_;           // by node
  std::vector<Timed> timed_;             // by node
  std::vector<std::uint32_t> position_;  // by node: on its device
  std::vector<std::uint32_t> next_;      // by device
  std::vector<Time> free_;               // by device
  std::vector<Time> link_;               // by device: its sends so far are over
  std::vector<std::size_t> waiting_;
  bool is_timed_ = false;

  // In which each op comes after what it needs, and after the op ahead of it on its device.
  std::vector<Node> sequence_;
  std::vector<std::uint32_t> place_;  // by node: in the sequence
  std::vector<Ways> ways_;            // by node
  bool has_ways_ = false;             // of the times as they are, or were before the last change
  std::uint32_t last_begin_ = 0;      // the last place of an op that is the first on its device

  // The last change:
  bool is_changed_ = false;  // it has not been undone
  std::size_t device_ = 0;
  std::vector<Node> list_;          // that was the device's
  std::size_t from_ = 0;            // positions on the device
  std::size_t to_ = 0;              // behind them
  std::uint32_t begin_ = 0;         // the window: places from that of the first op that has moved
  std::uint32_t end_ = 0;           // to behind that of the last
  std::vector<Node> window_;        // as it is sorted again
  std::vector<int> missing_;        // by node of the window: ops of it that come before
  std::vector<Earlier> earlier_;    // of the ops that have been timed again
  std::vector<std::uint32_t> due_;  // by node: equal to change_ where it is to be timed again
  std::uint32_t change_ = 0;
  std::uint32_t last_due_ = 0;  // place
};

}  // namespace stageline
