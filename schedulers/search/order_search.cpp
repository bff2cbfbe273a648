#include "schedulers/search/order_search.hpp"

#include <algorithm>
#include <utility>

#include "schedulers/search/device_bound.hpp"
#include "schedulers/search/order_beam.hpp"
#include "schedulers/search/stash_bound.hpp"
#include "sim/base/index.hpp"
#include "sim/interference.hpp"
#include "sim/lower/passes.hpp"

namespace stageline {
namespace {

// Forwards in all orders tried, after which the search ends: less than half a second with climb().
constexpr std::int64_t most_forwards_tried = 900'000;
// What one of them costs, in tenths of a list schedule's.
constexpr std::int64_t list_cost = 10;
constexpr std::int64_t estimate_cost = 3;
constexpr std::int64_t simulation_cost = 80;

constexpr std::int64_t most_climbed = 12'000'000;  // ops run in climb()
constexpr std::size_t most_starts = 3;             // of climb()
constexpr int most_vain_climbs = 2000;             // in a row of climb_until()

constexpr std::int64_t most_branched = 1'200'000;  // states of branch() times stages
constexpr std::size_t narrowest = 16;              // states of a level
constexpr std::size_t widest = 1024;
constexpr std::size_t most_states = std::size_t{1} << 20;  // of a level of branch_until()

// I and W.
bool are_apart(const StepLists& lists) {
  return std::none_of(lists.begin(), lists.end(), [](const std::vector<Op>& list) {
    return std::any_of(list.begin(), list.end(), [](Op op) { return op.kind == OpKind::backward; });
  });
}

}  // namespace

OrderSearch::OrderSearch(const Problem& problem, const StashLimit& limit, StashRoom room,
                         const std::string& schedule, bool for_span)
    : problem_(problem),
      limit_(limit),
      room_(std::move(room)),
      for_span_(for_span),
      blank_(blank_program(problem, schedule, WeightRule::flush)),
      climb_(problem, limit, room_, for_span),
      bound_(least_times()),
      left_(most_forwards_tried * list_cost) {
  blank_.steps = 1;
}

// No order has a shorter span than the busiest device's work, nor ends before that work behind the
// first forward's way there; and a limit of stashes costs time, too.
OrderSearch::Key OrderSearch::least_times() const {
  const Costs& costs = problem_.costs;
  std::vector<Time> begins(costs.stage.size());
  std::vector<Time> work(problem_.devices.size());
  std::vector<std::optional<Time>> first(problem_.devices.size());
  for (std::size_t s = 0; s < costs.stage.size(); ++s) {
    for (const EdgeCosts& edge : costs.edges) {
      if (edge.edge.to != s) continue;
      const Time before = begins[edge.edge.from] + costs.stage[edge.edge.from].forward;
      begins[s] = std::max(begins[s], before);
    }
    const StageCosts& stage = costs.stage[s];
    const Time backward = std::min(stage.input_grad + stage.weight_grad, stage.backward);
    const int device = problem_.placement.stage[s].replicas[0];
    nth(work, device) += (stage.forward + backward) * problem_.microbatches;
    std::optional<Time>& here = nth(first, device);
    here = std::min(here.value_or(begins[s]), begins[s]);
  }
  Time span{};
  Time makespan{};
  for (std::size_t d = 0; d < work.size(); ++d) {
    span = std::max(span, work[d]);
    makespan = std::max(makespan, first[d].value_or(Time{}) + work[d]);
  }
  if (const std::optional<StepTimes> bound = stash_bound(problem_, limit_)) {
    span = std::max(span, bound->span);
    makespan = std::max(makespan, bound->makespan);
  }
  if (const std::optional<StashBounds> bounds = device_bounds(problem_, limit_)) {
    span = std::max(span, bounds->span.value);
    makespan = std::max(makespan, bounds->makespan.value);
  }
  return keyed(span, makespan);
}

bool OrderSearch::keeps_limit(const StepLists& lists) const {
  const bool bytes = limit_.unit == StashLimit::Unit::bytes;
  for (std::size_t d = 0; d < limit_.most.size(); ++d) {
    if (limit_.most[d] < 0) continue;
    std::int64_t held = 0;
    for (const Op op : lists[d]) {
      const StageCosts& costs = problem_.costs.of(op);
      const std::int64_t all = bytes ? costs.stash().count : 1;
      const std::int64_t after_input = bytes ? costs.stash_after_input_grad().count : 1;
      held += op.kind == OpKind::forward      ? all
              : op.kind == OpKind::input_grad ? after_input - all
              : op.kind == OpKind::backward   ? -all
                                              : -after_input;
      if (held > limit_.most[d]) return false;
    }
  }
  return true;
}

bool OrderSearch::has_room(const StepLists& lists) const {
  for (std::size_t d = 0; d < room_.bytes.size(); ++d) {
    std::int64_t held = 0;
    for (const Op op : lists[d]) {
      const std::int64_t stash = problem_.costs.of(op).stash().count;
      held += op.kind == OpKind::forward ? stash : op.kind == OpKind::input_grad ? 0 : -stash;
      if (held > room_.bytes[d]) return false;
    }
  }
  return true;
}

std::int64_t OrderSearch::forwards() const {
  return static_cast<std::int64_t>(problem_.costs.stage.size()) * problem_.microbatches;
}

bool OrderSearch::shares_links(const StepLists& lists) {
  if (!shared_) {
    shared_ = shares_resources(compile(add_transfers(freeze(blank_, lists)), problem_.costs));
  }
  return *shared_;
}

// Whether its simulation would take longer than `most`, of what is to be short: where messages
// share links it takes no less time than where they do not. I and W are apart.
bool OrderSearch::takes_longer(const StepLists& lists, Time most) {
  const std::optional<StepTimes> least = climb_.times_from_begin(lists);
  if (!least) return false;
  const Time rounding{4 * forwards()};  // of two messages each, whose rates change
  return (for_span_ ? least->span : least->makespan) - rounding > most;
}

OrderSearch::Key OrderSearch::simulated(const StepLists& lists) const {
  const Program program = add_transfers(freeze(blank_, lists));
  TaskGraph graph = compile(program, problem_.costs);
  const TaskTimes times = simulate_together(graph, {});
  Time span{};
  Time last{};
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    if (graph.lanes[lane].kind != LaneKind::compute) continue;
    const std::uint32_t begin = graph.lane_task[graph.lane_begin[lane]];
    const std::uint32_t end = graph.lane_task[graph.lane_begin[lane + 1] - 1];
    span = std::max(span, stageline::end_of(graph, times, end) - start_of(graph, times, begin));
    last = std::max(last, stageline::end_of(graph, times, end));
  }
  return keyed(span, last);
}

void OrderSearch::keep(const StepLists& lists, Key key) {
  if (!found_ || key < *found_) {
    found_ = key;
    best_ = lists;
  }
  const auto at = std::find_if(starts_.begin(), starts_.end(),
                               [&](const auto& start) { return key <= start.first; });
  if (at == starts_.end() && starts_.size() >= most_starts) return;
  if (at != starts_.end() && at->first == key) return;
  if (!are_apart(lists)) return;
  starts_.insert(at, {key, lists});
  if (starts_.size() > most_starts) starts_.pop_back();
}

void OrderSearch::try_order(const StepLists& lists) {
  if (!keeps_limit(lists) || !has_room(lists)) return;
  if (starts_.size() == most_starts && are_apart(lists) &&
      takes_longer(lists, starts_.back().first.first)) {
    return;
  }
  keep(lists, simulated(lists));
}

bool OrderSearch::try_rules(const ListRules& rules) {
  if (over()) return false;
  const ListOutcome outcome = list_schedule(problem_, rules, limit_);
  const bool shared = shares_links(outcome.ops);
  left_ -= forwards() * (shared ? simulation_cost : list_cost);
  if (!has_room(outcome.ops)) return false;
  // Nothing would come of it.
  if (shared && rules.split && best_rules_ && starts_.size() == most_starts &&
      takes_longer(outcome.ops, std::max(best_of_rules_.first, starts_.back().first.first))) {
    return false;
  }
  // Without shared links the list scheduler's times are the simulator's.
  const Key key = shared ? simulated(outcome.ops) : keyed(outcome.span, outcome.makespan);
  keep(outcome.ops, key);
  if (best_rules_ && key >= best_of_rules_) return false;
  best_rules_ = rules;
  best_of_rules_ = key;
  return true;
}

std::optional<StepTimes> OrderSearch::estimate(const StepLists& lists) {
  if (over()) return std::nullopt;
  left_ -= forwards() * estimate_cost;
  return climb_.times(lists);
}

void OrderSearch::vary_counts() {
  bool better = best_rules_.has_value();
  while (better) {
    better = false;
    for (std::size_t d = 0; d < problem_.devices.size(); ++d) {
      for (const int change : {-1, +1}) {
        for (std::vector<int> ListRules::*counts : {&ListRules::ahead, &ListRules::warm_up}) {
          ListRules rules = *best_rules_;
          if ((rules.*counts).empty()) continue;
          int& count = (rules.*counts)[d];
          count = std::max(1, count + change);
          better = try_rules(rules) || better;
        }
      }
    }
  }
}

void OrderSearch::branch(const OrderStates& states, std::size_t width, const BranchStop& stop) {
  BeamLimits limits;
  limits.below = found_->first;
  limits.width = width;
  if (stop) {
    limits.stop = [&](std::int64_t looked_at) {
      return stop({value(), bound(), states_ + looked_at});
    };
  }
  const BeamOutcome outcome = beam_search(states, limits);
  states_ += outcome.states;
  if (!outcome.lists.empty()) {
    const Key before = *found_;
    try_order(outcome.lists);
    is_branched_ = is_branched_ || *found_ < before;
  }
  if (states.complete() && room_.bytes.empty()) proved_ = std::max(proved_, outcome.least);
}

void OrderSearch::branch() {
  if (!found_ || found_->first <= bound_.first || over()) return;
  const OrderStates states(problem_, limit_, for_span_);
  if (!states.can()) return;
  const std::int64_t before = states_;
  for (std::size_t width = narrowest; width <= widest; width *= 4) {
    const std::int64_t level = 3 * forwards() * static_cast<std::int64_t>(width);
    const std::int64_t work = states_ - before + level;
    if (width > narrowest && work * static_cast<std::int64_t>(states.stages()) > most_branched) {
      return;
    }
    branch(states, width, {});
    if (is_proved() || found_->first <= bound_.first) return;
  }
}

void OrderSearch::branch_until(const BranchStop& stop) {
  if (!found_ || is_proved() || found_->first <= bound_.first) return;
  const OrderStates states(problem_, limit_, for_span_);
  if (!states.can()) return;
  for (std::size_t width = widest; width <= most_states; width *= 4) {
    if (stop({value(), bound(), states_})) return;
    branch(states, width, stop);
    if (is_proved() || found_->first <= bound_.first) return;
  }
}

std::int64_t OrderSearch::tries_of_climb() const {
  const std::int64_t share = most_climbed / static_cast<std::int64_t>(most_starts);
  return share / (3 * forwards());
}

void OrderSearch::climb() {
  if (is_proved()) return;
  const auto starts = starts_;
  for (const auto& [key, lists] : starts) {
    if (found_->first <= bound_.first) return;
    if (!climb_.times(lists)) continue;
    const StepLists better = climb_.climb(lists, tries_of_climb(), bound_.first);
    if (better != lists) try_order(better);
  }
}

void OrderSearch::climb_best() {
  if (!found_ || is_proved() || found_->first <= bound_.first || !are_apart(best_)) return;
  if (!climb_.times(best_)) return;
  const StepLists better = climb_.climb(best_, tries_of_climb() / 4, bound_.first);
  if (better != best_) try_order(better);
}

void OrderSearch::climb_until(const BranchStop& stop) {
  std::uint32_t seed = 2;  // climb() has taken the first
  for (int vain = 0; vain < most_vain_climbs; ++vain, ++seed) {
    if (!found_ || is_proved() || found_->first <= bound_.first || starts_.empty()) return;
    if (stop({value(), bound(), states_})) return;
    const StepLists start = starts_[seed % starts_.size()].second;
    if (!climb_.times(start)) continue;
    const StepLists better = climb_.climb(start, tries_of_climb(), bound_.first, seed);
    if (better == start) continue;
    const Key before = *found_;
    try_order(better);
    if (*found_ >= before) continue;
    vain = 0;
    is_branched_ = false;
  }
}

}  // namespace stageline
