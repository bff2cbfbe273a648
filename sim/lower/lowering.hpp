// The state of a lowering, and its steps. The steps are in compile.cpp (walking the lanes),
// rendezvous.cpp (messages that block) and deadlocks.cpp (finding all deadlocks).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"
#include "sim/lower/charges.hpp"
#include "sim/lower/patterns.hpp"
#include "sim/lower/standstill.hpp"
#include "sim/lower/task_writer.hpp"
#include "sim/rules.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

class Lowering {
 public:
  /// With `patterns` off, the rules are asked about every single op: slower, with the same result.
  Lowering(const Program& program, const Costs& costs, bool patterns = true);
  ~Lowering();
  Lowering(const Lowering&) = delete;
  Lowering& operator=(const Lowering&) = delete;

  TaskGraph lower();

  /// The cycles in which lanes are stuck, until `most` are found. In each, one wait is given up
  /// once it is reported. Waits for a product that no op makes, or that a later op of the same lane
  /// makes, are given up at once and not reported.
  std::vector<Deadlock> deadlocks(std::size_t most);

 private:
  // compile.cpp
  void start();
  void make_lanes();
  void check_pairs() const;
  std::vector<std::uint32_t> count_ops();
  void walk_queue();
  void walk(std::uint32_t lane);
  template <bool plain>
  void walk(std::uint32_t lane);
  bool slot_met(Slot& slot, Op op, std::uint32_t lane);
  bool all_met(OpPattern& pattern, Op op, std::uint32_t lane);
  bool met(Op op, std::uint32_t lane);
  bool met_by_rules(OpPattern& pattern, Op op, std::uint32_t lane);
  bool span_met(const OpPattern& pattern, Op op, std::uint32_t lane);
  bool met_at(std::int64_t place, Op op, std::uint32_t lane);
  bool exists(Product product, int at, std::uint32_t number, int part) const;
  void make(const OpPattern& pattern, Op op, std::uint32_t task);
  void done(Op op, std::uint32_t task);
  Charge charge_of(OpPattern& pattern, Op op, std::uint32_t lane);
  void find_charge(OpPattern& pattern, Op op, std::uint32_t lane);
  Charge message_charge(Op send, std::uint32_t lane);
  void finish_lanes();
  void check_length() const;
  // Each op of a list is one task of that lane: none is half of a pair, or has a lane of its own.
  bool lanes_are_lists() const { return !blocks_ && !any_overlapped_; }
  LaneKind list_of(OpKind kind) const {
    return blocks_ && cargo_of(kind) ? LaneKind::compute : lane_of(program_.settings, kind);
  }
  Standstill standstill() const {
    return {program_, stages_, index_, slot_, ops_, head_, end_, posted_, maker_};
  }

  // rendezvous.cpp: a lane's list is one stream of compute ops and messages
  struct Stream {
    std::vector<std::uint32_t> before;  // tasks that the next op of the list waits for
    std::vector<std::uint32_t> batch;   // tasks of the batch at the head of the list
    std::uint32_t left = 0;             // messages of the batch that the other end has not posted
    bool posted = false;
  };
  void follow(std::uint32_t list, std::uint32_t lane, std::uint32_t needs_before);
  std::size_t message_slot(Op op) const;
  bool exchanged(std::uint32_t lane);
  void post(std::uint32_t lane, Op op);
  void make_message(Op send, std::uint32_t from, std::uint32_t to, std::uint32_t waiting);
  std::uint32_t channel(std::uint32_t list, Op op, LaneKind kind);

  // deadlocks.cpp
  void find_makers();
  bool forgiven(std::int64_t place, std::uint32_t lane) const;
  bool stop_waiting(std::uint32_t lane);
  void give_up(std::uint32_t lane);

  const Program& program_;
  StageGraph stages_;
  ProductIndex index_;
  std::vector<Slot> slot_;  // by product
  Charges charges_;
  OpPatterns patterns_;
  bool use_patterns_;
  bool blocks_;
  bool any_overlapped_ = false;
  std::vector<Op> ops_;                     // by lane
  std::vector<std::uint32_t> head_;         // by lane that has a list, into ops_: its next op
  std::vector<std::uint32_t> end_;          // by lane that has a list, into ops_
  std::vector<std::uint32_t> next_waiter_;  // by lane: the next one that waits for the same product
  std::vector<std::uint32_t> queue_;        // lanes to walk
  std::vector<std::uint32_t> turn_;         // lanes that are walked now
  TaskWriter out_;
  // Where messages block:
  std::vector<Stream> stream_;         // by lane
  std::vector<std::uint32_t> posted_;  // by slot of a message: the lane that has posted it, or gone
  std::map<std::pair<std::uint32_t, LaneKind>, std::vector<std::uint32_t>> channels_;  // by lane
  // Where all deadlocks are looked for:
  bool forgiving_ = false;
  std::vector<std::uint32_t>
      maker_;  // by slot: the lane that makes it; of a message, that reads it
  std::uint32_t given_up_ = no_lane;  // the lane whose next op waits for nothing
};

}  // namespace stageline
