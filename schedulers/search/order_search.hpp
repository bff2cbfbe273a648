// The best order found of one step, for the costs at hand and under a limit: orders and rules are
// tried one after another, each in the simulator's time, and the best are improved op by op
// (schedulers/search/order_climb.hpp). The work is bounded by counts, so that the same input has
// the same outcome.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedulers/parts/list_schedule.hpp"
#include "schedulers/search/order_climb.hpp"
#include "schedulers/search/order_states.hpp"
#include "sim/program.hpp"

namespace stageline {

/// What is known of an order while branch and bound looks for a shorter one.
struct BranchKnown {
  Time best{};   // of what is to be short
  Time bound{};  // no order is shorter
  std::int64_t states = 0;
};
using BranchStop = std::function<bool(const BranchKnown&)>;

class OrderSearch {
 public:
  /// For the shortest device span, of these the one that ends first; or the other way round.
  /// `schedule` is the name for what is run. Problem and limit outlive the search.
  OrderSearch(const Problem& problem, const StashLimit& limit, StashRoom room,
              const std::string& schedule, bool for_span);

  /// An order of any kinds of compute ops, where it keeps the limit and has room.
  void try_order(const StepLists& lists);

  /// A list schedule, unless the work is used up. Whether it is better than all rules before.
  bool try_rules(const ListRules& rules);

  /// Times of an order with I and W apart, as in OrderClimb: less work than try_order, but without
  /// links that are shared. Nothing where the work is used up.
  std::optional<StepTimes> estimate(const StepLists& lists);

  /// Varies `ahead` and `warm_up` of the best rules, a device at a time, as long as that helps.
  void vary_counts();

  /// By branch and bound over a bounded number of states (schedulers/search/order_beam.hpp), where
  /// something may be shorter than the best and stages follow one another. It ends the search where
  /// it proves that nothing is.
  void branch();
  /// The same with ever more states, until it is proved that nothing is shorter, `stop` says so, or
  /// there would be too many for the memory.
  void branch_until(const BranchStop& stop);

  /// The best orders op by op.
  void climb();
  /// The best alone, in a fourth of the tries.
  void climb_best();
  /// The same with ever other tries, until nothing can be shorter, `stop` says so, or none has
  /// helped for long.
  void climb_until(const BranchStop& stop);

  /// Nothing can be better, or the work is used up.
  bool over() const { return found_ && (is_proved() || *found_ == bound_ || left_ <= 0); }

  /// At least one order or rule has been tried that has room.
  const StepLists& best() const { return best_; }

  /// The value of best(): what is to be short, as simulated.
  Time value() const { return found_ ? found_->first : Time{}; }
  /// No order is shorter. The longest of the device's work, the stash bound and what branch() has
  /// proved.
  Time bound() const { return std::max(bound_.first, proved_); }
  bool is_bound_by_branch() const { return proved_ > bound_.first; }
  bool is_found_by_branch() const { return is_branched_; }
  std::int64_t states() const { return states_; }  // that branch() has looked at

 private:
  bool is_proved() const { return found_ && found_->first <= proved_; }

  using Key = std::pair<Time, Time>;  // what is to be short goes first

  Key least_times() const;
  bool keeps_limit(const StepLists& lists) const;
  bool has_room(const StepLists& lists) const;
  bool shares_links(const StepLists& lists);
  bool takes_longer(const StepLists& lists, Time most);
  Key simulated(const StepLists& lists) const;
  Key keyed(Time span, Time makespan) const {
    return for_span_ ? Key{span, makespan} : Key{makespan, span};
  }
  std::int64_t forwards() const;
  std::int64_t tries_of_climb() const;
  void branch(const OrderStates& states, std::size_t width, const BranchStop& stop);
  void keep(const StepLists& lists, Key key);

  const Problem& problem_;
  const StashLimit& limit_;
  StashRoom room_;
  bool for_span_;
  Program blank_;  // of one step
  OrderClimb climb_;
  Key bound_;
  StepLists best_;
  std::optional<Key> found_;
  std::optional<ListRules> best_rules_;
  Key best_of_rules_;
  std::vector<std::pair<Key, StepLists>> starts_;  // the best with I and W apart, for climb()
  std::int64_t left_;                              // forwards
  std::optional<bool> shared_;
  Time proved_{};             // by branch(): no order is shorter
  bool is_branched_ = false;  // the best order is from branch()
  std::int64_t states_ = 0;
};

}  // namespace stageline
