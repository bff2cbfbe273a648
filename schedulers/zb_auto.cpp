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

#include "schedulers/list_schedule.hpp"
#include "schedulers/priorities.hpp"
#include "schedulers/scheduler.hpp"
#include "schedulers/stash_limit.hpp"
#include "sim/engine.hpp"
#include "sim/passes.hpp"

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

// Forwards in all orders tried, after which the search ends: a second or so.
constexpr std::int64_t most_forwards_tried = 4'000'000;

using Lists = std::vector<std::vector<Op>>;
using WarmUp = std::vector<int>;  // by device: forwards before the first I

Op op_of(OpKind kind, std::size_t stage, int m) {
  Op op;
  op.kind = kind;
  op.stage = static_cast<std::uint16_t>(stage);
  op.microbatch = static_cast<std::uint32_t>(m);
  return op;
}

// F and I in turn behind the warm-up, W as late as `most` stashes allow: ZB-H1 where the warm-up is
// p-r and most is p, ZB-H2 where they are 2(p-r)-1 and 2p-1. With `whole` B, which is 1F1B.
Lists in_turn(const Problem& problem, const WarmUp& warm_up, std::int64_t most, bool whole) {
  const int count = problem.microbatches;
  Lists lists(problem.devices.size());
  for (std::size_t s = 0; s < warm_up.size(); ++s) {
    const int ahead = std::min(warm_up[s], count);
    int weights = 0;
    for (int i = 0; i < count + ahead - 1; ++i) {
      if (i < count) lists[s].push_back(op_of(OpKind::forward, s, i));
      const int back = i - ahead + 1;
      if (back < 0) continue;
      lists[s].push_back(op_of(whole ? OpKind::backward : OpKind::input_grad, s, back));
      if (!whole && back + warm_up[s] >= most) {
        lists[s].push_back(op_of(OpKind::weight_grad, s, weights++));
      }
    }
    while (!whole && weights < count) {
      lists[s].push_back(op_of(OpKind::weight_grad, s, weights++));
    }
  }
  return lists;
}

class Search {
 public:
  Search(const Problem& problem, const StashLimit& limit)
      : problem_(problem), limit_(limit), for_span_(problem.knobs.at("goal") == "span") {
    blank_ = blank_program(problem, "zb_auto", WeightRule::flush);
    blank_.steps = 1;
    bound_ = least_times();
  }

  Lists best() {
    const int p = problem_.placement.stages();
    const auto by_distance = [&](int factor, int less) {
      WarmUp counts;
      for (int s = 0; s < p; ++s) counts.push_back(std::max(1, factor * (p - s) - less));
      return counts;
    };
    std::vector<WarmUp> warm_ups{by_distance(1, 0), by_distance(2, 1)};
    for (const WarmUp& counts : warm_ups) {
      try_lists(in_turn(problem_, counts, counts[0], false));
      try_lists(in_turn(problem_, counts, counts[0], true));
    }
    for (const bool over : {false, true}) {
      const WarmUp counts = until_first_backward(over);
      if (std::find(warm_ups.begin(), warm_ups.end(), counts) == warm_ups.end()) {
        warm_ups.push_back(counts);
      }
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
  // Forwards that a device has time for before its first I can arrive; `over`: one more rather than
  // a bubble.
  WarmUp until_first_backward(bool over) const {
    const Costs& costs = problem_.costs;
    const auto p = costs.stage.size();
    std::vector<Time> way(p);  // of the message from the stage before
    std::vector<Time> back(p);
    for (const EdgeCosts& edge : costs.edges) {
      if (edge.edge.to != edge.edge.from + 1) continue;
      const Route& there = costs.network.between(edge.edge.from, edge.edge.to);
      const Route& here = costs.network.between(edge.edge.to, edge.edge.from);
      way[edge.edge.to] = transfer_time(edge.activation, there.bandwidth) + there.latency;
      back[edge.edge.from] = transfer_time(edge.gradient, here.bandwidth) + here.latency;
    }
    std::vector<Time> first(p);  // F of the first micro-batch ends
    std::vector<Time> slowest(p);
    Time at{};
    Time slow{};
    for (std::size_t s = 0; s < p; ++s) {
      at += way[s] + costs.stage[s].forward;
      slow = std::max({slow, costs.stage[s].forward, Time{1}});
      first[s] = at;
      slowest[s] = slow;
    }
    WarmUp counts(p, 1);
    Time arrives = first[p - 1];  // of the gradient
    for (std::size_t s = p; s-- > 0;) {
      const Time wait = std::max(arrives - first[s], Time{});
      std::int64_t more = wait / slowest[s];
      if (over && wait % slowest[s] != Time{}) ++more;
      const auto least = s + 1 < p ? std::int64_t{counts[s + 1]} : 1;
      more = std::min<std::int64_t>(more + 1, problem_.microbatches);
      more = std::min(more, room(s));
      counts[s] = static_cast<int>(std::max(more, std::min(least, room(s))));
      const Time starts = std::max(arrives, first[s] + slowest[s] * (counts[s] - 1));
      if (s > 0) arrives = starts + costs.stage[s].input_grad + back[s - 1];
    }
    return counts;
  }

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

  // Stashes that fit into the limit.
  std::int64_t room(std::size_t s) const {
    const std::int64_t all = problem_.microbatches;
    if (s >= limit_.most.size() || limit_.most[s] < 0) return all;
    const std::int64_t one = limit_.unit == StashLimit::Unit::stashes
                                 ? 1
                                 : std::max<std::int64_t>(problem_.costs.stage[s].stash().count, 1);
    return std::clamp<std::int64_t>(limit_.most[s] / one, 1, all);
  }

  bool keeps_limit(const Lists& lists) const {
    const bool bytes = limit_.unit == StashLimit::Unit::bytes;
    for (std::size_t d = 0; d < limit_.most.size(); ++d) {
      if (limit_.most[d] < 0) continue;
      std::int64_t held = 0;
      for (const Op op : lists[d]) {
        const StageCosts& costs = problem_.costs.stage[op.stage];
        const std::int64_t all = bytes ? costs.stash().count : 1;
        const std::int64_t by_input = bytes ? costs.stash_input_grad.count : 0;
        held += op.kind == OpKind::forward      ? all
                : op.kind == OpKind::input_grad ? -by_input
                : op.kind == OpKind::backward   ? -all
                                                : by_input - all;
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
    left_ -= static_cast<std::int64_t>(problem_.costs.stage.size()) * problem_.microbatches;
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
  return under_limit(problem, choice, [&](const StashLimit& limit) {
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
