// A zero-bubble order for the costs at hand (after the automatic scheduler of Qi et al. 2023,
// "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, section 3): times of F, I, W and messages
// stage by stage, under a limit of stashes or bytes on each device. Tried, each in the simulator's
// time, are
//
//   ZB-H1, ZB-H2 and 1F1B, and last of all every schedule of this placement whose order is fixed,
//   where the limit lets them be: so none of them is ever better
//   the list scheduler's orders: I first, F first or by the critical path; with a device's forwards
//   ahead of its backwards bounded, or a number of them awaited before its first I (as ZB-H1,
//   ZB-H2, or as many as fit before a gradient can arrive); W in any gap, in gaps that fit it, or
//   so that all devices idle alike
//   where a shorter order is possible, branch and bound over so many states (order_beam.hpp)
//   of the best of these, other counts, a device at a time, until none helps
//   of the best three orders, other places for single ops (schedulers/search/order_climb.hpp)
//   the round of cyclic, and where it is shorter, other places for single ops of it
//
// and the one with the shortest device span is kept, then of these the one that ends first. With
// several stages a device (placement=looped or v), bounds on what each stage has in flight take the
// place of counts by device; beside them, for loops the orders of interleaved 1F1B and of grouped
// interleaving (schedulers/search/grouped_candidates.hpp) are tried, for two stages in a V every
// building block (schedulers/search/v_search.hpp) and its authors' rounds
// (schedulers/search/v_rounds.hpp).
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
#include "schedulers/zb_auto.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "schedulers/parts/building_block.hpp"
#include "schedulers/parts/interleaved_plan.hpp"
#include "schedulers/parts/memory_trial.hpp"
#include "schedulers/parts/placement_knobs.hpp"
#include "schedulers/parts/stash_limit.hpp"
#include "schedulers/parts/warm_up.hpp"
#include "schedulers/scheduler.hpp"
#include "schedulers/search/cyclic_order.hpp"
#include "schedulers/search/grouped_candidates.hpp"
#include "schedulers/search/list_candidates.hpp"
#include "schedulers/search/v_search.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace zb_auto_scheduler {
namespace {

constexpr Knob knobs[] = {
    limit_knob("p"),
    {"goal", "span|makespan", "span",
     "shorten the longest device span, which is the pace of steps that follow each other; or the "
     "time of one step"},
    placement_knob,
    chunks_knob,
};

Placement place(int devices, const Knobs& knobs) {
  read_limit("zb_auto", knobs.at("limit"), devices);
  return placement_by_knobs("zb_auto", knobs, devices);
}

void search_straight(OrderSearch& search, const Problem& problem, const StashLimit& limit) {
  for (const int factor : {1, 2}) {
    const WarmUp counts = by_distance(problem, factor);
    search.try_order(in_turn(problem, counts, false));
    search.try_order(in_turn(problem, counts, true));
  }
  const std::vector<WarmUp> warm_ups = warm_ups_for(problem, limit);
  const Rank ranks[] = {backward_first(), critical_path_first(problem, true)};
  for (const auto& [fill, even] : fills()) {
    for (const Rank& rank : ranks) {
      ListRules rules;
      rules.rank = rank;
      rules.fill = fill;
      rules.even_idle = even;
      search.try_rules(rules);
      for (const WarmUp& warm_up : warm_ups) {
        rules.ahead = warm_up;
        rules.warm_up = {};
        search.try_rules(rules);
        rules.warm_up = warm_up;
        search.try_rules(rules);
        rules.ahead = {};
        search.try_rules(rules);
      }
    }
  }
  ListRules rules;
  rules.rank = forward_first();
  search.try_rules(rules);
  search.branch();
  search.vary_counts();
  search.climb();
}

void search_looped(OrderSearch& search, const Problem& problem) {
  ListRules rules;
  rules.rank = backward_first();
  for (const int factor : {2, 1}) {
    rules.plan = interleaved_plan(problem, factor);
    for (const auto& [fill, even] : fills()) {
      rules.fill = fill;
      rules.even_idle = even;
      search.try_rules(rules);
    }
  }
  try_list_rules(search, problem);
  try_grouped(search, problem);
  search.branch();
  try_in_flight(search, problem);
  search.climb();
}

// The other schedules of this placement whose order is fixed, so that none of them is ever better.
void try_named(OrderSearch& search, const Problem& problem) {
  const auto devices = static_cast<int>(problem.devices.size());
  for (const char* const name : {"gpipe", "eager_1f1b", "interleaved_1f1b", "looped_bfs",
                                 "interleaved_zb", "1f1b_v", "hanayo"}) {
    ScheduleSpec spec = parse_schedules(name).front();
    const auto chunks = spec.knobs.find("chunks");
    if (chunks != spec.knobs.end()) {
      chunks->second = std::to_string(problem.placement.stages() / devices);
    }
    try {
      if (spec.scheduler->place(devices, spec.knobs) != problem.placement) continue;
      Problem step = problem;
      step.steps = 1;
      step.knobs = spec.knobs;
      search.try_order(spec.scheduler->schedule(step).ops);
    } catch (const UsageError&) {  // none for these numbers
    }
  }
}

// One round for every micro-batch. Last, so that what the others find and climb from is not lost;
// where it is shorter, single ops of it elsewhere.
void try_round(OrderSearch& search, const Problem& problem, const StashLimit& limit) {
  try {
    const Time before = search.value();
    search.try_order(unrolled(cyclic_order(problem, limit).round, problem.microbatches));
    if (search.value() < before) search.climb_best();
  } catch (const UsageError&) {  // a round needs more than this limit
  }
}

}  // namespace
}  // namespace zb_auto_scheduler

SearchedOrder search_order(const Problem& problem, const StashLimit& limit,
                           const BranchStop& stop) {
  using namespace zb_auto_scheduler;
  const auto devices = static_cast<int>(problem.devices.size());
  OrderSearch search(problem, limit, {}, "zb_auto", problem.knobs.at("goal") == "span");
  const bool in_a_v = problem.knobs.at("placement") == "v";
  if (problem.placement.stages() == devices) {
    search_straight(search, problem, limit);
  } else if (in_a_v && problem.placement.stages() == 2 * devices) {
    try_list_rules(search, problem);
    search.branch();
    search_v(
        search, problem, limit,
        {zb_v_plan(problem), v_rounds_plan(problem), block_plan(problem, v_half_block(devices), 0),
         block_plan(problem, v_min_block(devices), 0)});
  } else if (in_a_v) {
    try_list_rules(search, problem);
    search.branch();
    try_in_flight(search, problem);
    search.climb();
  } else {
    search_looped(search, problem);
  }
  if (search.value() != search.bound()) {
    try_named(search, problem);
    try_round(search, problem, limit);
  }
  if (stop) {
    search.branch_until(stop);
    search.climb_until(stop);
  }
  return {search.best(),
          search.value(),
          search.bound(),
          search.is_found_by_branch(),
          search.is_bound_by_branch(),
          search.states()};
}

namespace zb_auto_scheduler {
namespace {

Program searched(const Problem& problem, Goal goal) {
  const LimitChoice choice =
      read_limit("zb_auto", problem.knobs.at("limit"), static_cast<int>(problem.devices.size()));
  const Program blank = blank_program(problem, "zb_auto", WeightRule::flush);
  const auto by_search = [&](const StashLimit& limit) {
    return freeze(blank, search_order(problem, limit).lists);
  };
  // The limit in bytes under which messages leave room may be another for a round, or a list.
  const auto by_round = [&](const StashLimit& limit) {
    return freeze(blank, unrolled(cyclic_order(problem, limit).round, problem.microbatches));
  };
  std::vector<std::function<Program(const StashLimit&)>> others{by_round};
  for (const Rank& rank : {backward_first(), forward_first(), critical_path_first(problem, true)}) {
    others.emplace_back([&problem, &blank, rank](const StashLimit& limit) {
      ListRules rules;
      rules.rank = rank;
      return freeze(blank, list_schedule(problem, rules, limit).ops);
    });
  }
  return under_limit(problem, choice, true, goal, by_search, others);
}

bool keeps(const Program& program, const LimitChoice& choice) {
  if (choice.kind != LimitChoice::Kind::stashes) return true;
  for (const std::vector<Op>& list : program.ops) {
    std::int64_t held = 0;
    for (const Op op : list) {
      if (op.kind == OpKind::forward) ++held;
      if (op.kind == OpKind::backward || op.kind == OpKind::weight_grad) --held;
      if (held > choice.stashes) return false;
    }
  }
  return true;
}

// Other orders whose makespan may be shorter: that of the shortest span, and in a V those of the
// schedules that search under limits of their own.
std::vector<Program> others(const Problem& problem) {
  Problem for_span = problem;
  for_span.knobs["goal"] = "span";
  std::vector<Program> all{searched(for_span, Goal::span)};
  const auto devices = static_cast<int>(problem.devices.size());
  const bool in_a_v = problem.knobs.at("placement") == "v";
  if (!in_a_v || problem.placement.stages() != 2 * devices) return all;
  const LimitChoice choice = read_limit("zb_auto", problem.knobs.at("limit"), devices);
  for (const char* const name : {"zb_v", "v_half", "v_min"}) {
    try {
      Program named = scheduler(name).schedule(problem);
      if (!keeps(named, choice)) continue;
      all.push_back(blank_program(problem, "zb_auto", WeightRule::flush));
      all.back().ops = std::move(named.ops);
    } catch (const UsageError&) {  // none for these numbers
    }
  }
  return all;
}

// The makespan of its first step alone.
Time step_makespan(const Problem& problem, Program program) {
  program.steps = 1;
  for (std::vector<Op>& list : program.ops) {
    std::erase_if(list,
                  [&](const Op& op) { return op.microbatch >= as_size(problem.microbatches); });
  }
  return try_memory(problem, program).makespan;
}

Program schedule(const Problem& problem) {
  if (problem.knobs.at("goal") == "span") return searched(problem, Goal::span);
  Program found = searched(problem, Goal::makespan);
  Time least = step_makespan(problem, found);
  const bool by_memory = problem.knobs.at("limit") == "memory";
  for (Program& other : others(problem)) {
    const Time makespan = step_makespan(problem, other);
    if (makespan >= least || (by_memory && !try_memory(problem, other).fits())) continue;
    found = std::move(other);
    least = makespan;
  }
  return found;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "zb_auto",
    "I and W apart, in the best order found for these costs and this memory",
    "after Qi et al. 2023, arXiv 2401.10241, section 3; 2024, arXiv 2405.15362",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace zb_auto_scheduler
}  // namespace stageline
