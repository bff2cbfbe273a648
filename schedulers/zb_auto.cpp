// A zero-bubble order for the costs at hand (after the automatic scheduler of Qi et al. 2023,
// "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, section 3): times of F, I, W and messages
// stage by stage, under a limit of stashes or bytes on each device. Tried, each in the simulator's
// time, are
//
//   ZB-H1, ZB-H2 and 1F1B, where the limit lets them be: so none of them is ever better
//   the list scheduler's orders: I first or by the critical path; with a device's forwards ahead of
//   its backwards bounded, or a number of them awaited before its first I (as ZB-H1, ZB-H2, or as
//   many as fit before a gradient can arrive); W in any gap, in gaps that fit it, or so that
//   all devices idle alike
//   of the best of these, other counts, a device at a time, until none helps
//
// and the one with the shortest device span is kept, then of these the one that ends first.
//
// figure: stages 4, microbatches 8, F 2, I 3, W 1
//   0 |00112233         aaaA44bbbB55cccC66dddD77eeeE fffF gggG hhhH
//   1 |  001122      aaa33bbbA44cccB55dddC66eeeD77fffE gggF hhhGH
//   2 |    0011   aaa22bbb33cccA44dddB55eeeC66fffD77gggE hhhFGH
//   3 |      00aaa11bbb22ccc33dddA44eeeB55fffC66gggD77hhhEFGH
//
// figure: stages 4, microbatches 8, F 1/2/1/1, I 2, W 1, limit 2p
//   0 |01234567   aaA bbB ccC ddD eeffgghhEFGH
//   1 | 00112233aa44bb55cc66dd77eeffgghhABCDEFGH
//   2 |   0 1 aa2bb3cc4dd5ee6ffA7ggBhhCDEFGH
//   3 |    0aa1bb2cc3dd4ee5ff6ggA7hhBCDEFGH
#include <algorithm>
#include <optional>
#include <tuple>

#include "schedulers/parts/list_schedule.hpp"
#include "schedulers/parts/priorities.hpp"
#include "schedulers/parts/stash_limit.hpp"
#include "schedulers/parts/warm_up.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/engine.hpp"
#include "sim/lower/passes.hpp"

namespace stageline {
namespace {

constexpr Knob knobs[] = {
    {"limit", limit_values, "p",
     "the most a device may hold: N stashes, p or 2p of them, or the bytes its memory has room "
     "for"},
    {"goal", "span|makespan", "span",
     "shorten the longest device span, which is the pace of steps that follow each other; or the "
     "time of one step"},
};

Placement place(int devices, const Knobs& knobs) {
  read_limit("zb_auto", knobs.at("limit"), devices);
  return straight_placement(devices);
}

// Forwards in all orders tried, after which the search ends: less than half a second.
constexpr std::int64_t most_forwards_tried = 1'200'000;
constexpr int simulation_costs = 8;  // times what a list schedule alone does

using Lists = std::vector<std::vector<Op>>;

class Search {
 public:
  Search(const Problem& problem, const StashLimit& limit)
      : problem_(problem), limit_(limit), for_span_(problem.knobs.at("goal") == "span") {
    blank_ = blank_program(problem, "zb_auto", WeightRule::flush);
    blank_.steps = 1;
    bound_ = least_times();
  }

  Lists best() {
    const std::vector<WarmUp> warm_ups = warm_ups_for(problem_, limit_);
    for (const int factor : {1, 2}) {
      const WarmUp counts = by_distance(problem_, factor);
      try_lists(in_turn(problem_, counts, false));
      try_lists(in_turn(problem_, counts, true));
    }
    const Rank ranks[] = {backward_first(), critical_path_first(problem_, true)};
    for (const auto& [fill, even] :
         {std::pair(0, false), std::pair(100, false), std::pair(50, true), std::pair(50, false),
          std::pair(100, true)}) {
      for (const Rank& rank : ranks) {
        ListRules rules;
        rules.rank = rank;
        rules.fill = fill;
        rules.even_idle = even;
        try_rules(rules);
        for (const WarmUp& warm_up : warm_ups) {
          rules.ahead = warm_up;
          rules.warm_up = {};
          try_rules(rules);
          rules.warm_up = warm_up;
          try_rules(rules);
          rules.ahead = {};
          try_rules(rules);
        }
      }
    }
    improve();
    return std::move(best_);
  }

 private:
  // No order has a shorter span than the busiest device's work, nor ends before that work behind
  // the first forward's way there.
  std::pair<Time, Time> least_times() const {
    const Costs& costs = problem_.costs;
    std::vector<Time> begins(costs.stage.size());
    std::pair<Time, Time> least{};
    for (std::size_t s = 0; s < costs.stage.size(); ++s) {
      for (const EdgeCosts& edge : costs.edges) {
        if (edge.edge.to != s) continue;
        const Time before = begins[edge.edge.from] + costs.stage[edge.edge.from].forward;
        begins[s] = std::max(begins[s], before);
      }
      const StageCosts& stage = costs.stage[s];
      const Time backward = std::min(stage.input_grad + stage.weight_grad, stage.backward);
      const Time work = (stage.forward + backward) * problem_.microbatches;
      least.first = std::max(least.first, work);
      least.second = std::max(least.second, begins[s] + work);
    }
    return keyed(least);
  }

  bool keeps_limit(const Lists& lists) const {
    const bool bytes = limit_.unit == StashLimit::Unit::bytes;
    for (std::size_t d = 0; d < limit_.most.size(); ++d) {
      if (limit_.most[d] < 0) continue;
      std::int64_t held = 0;
      for (const Op op : lists[d]) {
        const StageCosts& costs = problem_.costs.stage[op.stage];
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

  void try_lists(const Lists& lists) {
    if (!keeps_limit(lists)) return;
    keep(lists, simulated(lists));
  }

  // One device's counts at a time, up or down, as long as it helps.
  void improve() {
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

  // Whether they are better than the best rules so far.
  bool try_rules(const ListRules& rules) {
    if (found_ == bound_ || (found_ && left_ <= 0)) return false;
    ListOutcome outcome = list_schedule(problem_, rules, limit_);
    if (!shared_) {
      shared_ =
          shares_resources(compile(add_transfers(freeze(blank_, outcome.ops)), problem_.costs));
    }
    // Without shared links the list scheduler's times are the simulator's.
    const auto times =
        *shared_ ? simulated(outcome.ops) : std::pair(outcome.span, outcome.makespan);
    left_ -= static_cast<std::int64_t>(problem_.costs.stage.size()) * problem_.microbatches *
             (*shared_ ? simulation_costs : 1);
    keep(outcome.ops, times);
    const auto key = keyed(times);
    if (best_rules_ && key >= best_of_rules_) return false;
    best_rules_ = rules;
    best_of_rules_ = key;
    return true;
  }

  // Longest device span and makespan.
  std::pair<Time, Time> simulated(const Lists& lists) const {
    const Program program = add_transfers(freeze(blank_, lists));
    const TaskGraph graph = compile(program, problem_.costs);
    const TaskTimes times = simulate(graph);
    Time span{};
    Time last{};
    for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
      if (graph.lanes[lane].kind != LaneKind::compute) continue;
      const std::uint32_t begin = graph.lane_task[graph.lane_begin[lane]];
      const std::uint32_t end = graph.lane_task[graph.lane_begin[lane + 1] - 1];
      span = std::max(span, end_of(graph, times, end) - start_of(graph, times, begin));
      last = std::max(last, end_of(graph, times, end));
    }
    return {span, last};
  }

  void keep(const Lists& lists, std::pair<Time, Time> times) {
    const auto key = keyed(times);
    if (found_ && key >= *found_) return;
    found_ = key;
    best_ = lists;
  }

  // What is to be short goes first.
  std::pair<Time, Time> keyed(std::pair<Time, Time> times) const {
    if (!for_span_) std::swap(times.first, times.second);
    return times;
  }

  const Problem& problem_;
  const StashLimit& limit_;
  bool for_span_;
  Program blank_;  // of one step
  Lists best_;
  std::optional<ListRules> best_rules_;
  std::pair<Time, Time> best_of_rules_;
  std::int64_t left_ = most_forwards_tried;
  std::optional<std::pair<Time, Time>> found_;
  std::pair<Time, Time> bound_;
  std::optional<bool> shared_;
};

Program schedule(const Problem& problem) {
  const LimitChoice choice =
      read_limit("zb_auto", problem.knobs.at("limit"), static_cast<int>(problem.devices.size()));
  const Program blank = blank_program(problem, "zb_auto", WeightRule::flush);
  return under_limit(problem, choice, true, [&](const StashLimit& limit) {
    return freeze(blank, Search(problem, limit).best());
  });
}

}  // namespace

extern const Scheduler zb_auto_scheduler;
const Scheduler zb_auto_scheduler = {
    "zb_auto",
    "I and W apart, in the best order found for these costs and this memory",
    "after Qi et al. 2023, arXiv 2401.10241, section 3",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline
