// Where an order stands when a part of its ops has been placed: how many of each stage and kind are
// done, when each device and its link are free, and when the messages under way arrive. Ops are
// placed as by Giffler and Thompson 1960 (doi 10.1287/opre.8.4.487): of all that can be next, one
// ends first; on its device goes that one, or another that starts before that end. So every order
// in which no op could start earlier without delaying another is met once, and some best order is
// among them, unless messages wait for the one before on their link: then a best order may keep an
// op back so that another's message goes first.
//
// A state says what no order that goes on from it can be shorter than (OrderStates::least), and two
// states with the same ops done compare: where one has nothing later than the other, the other is
// not needed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedulers/parts/list_schedule.hpp"
#include "schedulers/parts/stage_times.hpp"

namespace stageline {

/// An op that can be placed next.
struct NextOp {
  std::uint32_t stage = 0;
  OpKind kind = OpKind::forward;
  Time start{};
};

/// For one thread at a time.
class OrderStates {
 public:
  using Count = std::uint16_t;

  struct State {
    std::vector<Count> done;  // by stage: F, I, W
    /// By device: when it is free; where messages take time on links, when its sends so far are
    /// over; then by stage, F before I: the arrivals of what is under way to it.
    std::vector<Time> times;
    std::uint64_t barred = 0;  // by stage: its F is not the next op of the device
  };
  struct Least {
    Time value{};      // of what is to be short
    std::int64_t sum;  // of devices, for states that are alike in that
  };

  /// I and W apart; stages have one device each. `for_span`: the longest device span is to be
  /// short, else the makespan.
  OrderStates(const Problem& problem, const StashLimit& limit, bool for_span);

  /// Stages follow one another, at most 64 of them, and each device holds no more than 65 535
  /// micro-batches. Else nothing else may be asked.
  bool can() const { return can_; }
  /// All orders are among those that next() lets one place, or some best one.
  bool complete() const { return complete_; }

  std::size_t ops() const { return ops_; }
  std::size_t stages() const { return stages_.size(); }
  std::size_t devices() const { return devices_.size(); }
  bool has_wires() const { return has_wires_; }
  State begin() const;
  /// What can be placed next, and for each the state's bars then. Clears `ops`.
  void next(const State& state, std::vector<std::pair<NextOp, std::uint64_t>>& ops) const;
  void place(State& state, NextOp op) const;
  /// Also puts off what cannot happen as early as the state has it.
  Least least(State& state) const;
  std::size_t device_of(std::uint32_t stage) const { return stages_[stage].device; }

 private:
  struct Stage {
    std::size_t device = 0;
    Time forward{};
    Time backward{};
    Time weight{};
    Time wire{};  // of F's message
    Time latency{};
    Time back_wire{};  // of I's message
    Time back_latency{};
    bool from_afar = false;  // F's input comes over a link
    bool back_from_afar = false;
    std::int64_t holds = 0;
    std::int64_t weight_frees = 0;
    Time cool{};        // between the last F and the last I the device idles so long, if ...
    Time cool_input{};  // the same before the last I ends
    Time after_last{};  // from the end of the last I
    /// Where the device has this stage alone, as many F's may be ahead of I; negative: any.
    std::int64_t most = -1;
    bool until_weight = false;  // and of W: I frees nothing
    std::vector<Time> tail;  // by micro-batch F, I, W: from its start to the end of what is to be
                             // short
  };
  struct Device {
    std::vector<std::uint32_t> stages;
    std::int64_t most = -1;
    Time begins{};  // what its span is counted from
  };

  bool may_wait_to_send(const Device& device) const;
  void make_tails();
  bool fits(const State& state, std::uint32_t stage) const;
  void find_segments(const State& state) const;
  void find_heads(const State& state) const;
  void add_device(State& state, std::size_t d, Least& least) const;
  Time tail(std::uint32_t stage, int kind, std::size_t k) const {
    return stages_[stage].tail[3 * k + static_cast<std::size_t>(kind)];
  }

  bool can_ = true;
  bool complete_ = true;
  bool has_wires_ = false;
  std::size_t count_;  // micro-batches
  std::size_t ops_ = 0;
  std::vector<Stage> stages_;
  std::vector<Device> devices_;
  // Scratch for the state that is looked at:
  mutable std::vector<std::size_t> segment_;  // by stage and F or I: its first arrival
  mutable std::vector<Time> head_;            // by stage and F or I: its next cannot start before
};

}  // namespace stageline
