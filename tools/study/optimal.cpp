#include "tools/study/optimal.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "schedulers/parts/stash_limit.hpp"
#include "schedulers/search/device_bound.hpp"
#include "schedulers/search/stash_bound.hpp"
#include "schedulers/zb_auto.hpp"
#include "sim/base/errors.hpp"
#include "tools/base/table.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/study.hpp"

namespace stageline {
namespace {

void check(const Case& asked) {
  if (asked.program) throw UsageError("optimal makes a program; --program is for simulate");
  const Offloading& copies = asked.offloading;
  if (!asked.recomputation.parts.empty() || copies.any()) {
    throw UsageError(
        "optimal orders F, I and W as they are; leave out --recompute and --offload, and ask "
        "simulate for the program with them (--program)");
  }
}

std::string in_words(const LimitChoice& choice) {
  switch (choice.kind) {
    case LimitChoice::Kind::none:
      return "";
    case LimitChoice::Kind::stashes:
      return fmt::format("{} stash{}", choice.stashes, choice.stashes == 1 ? "" : "es");
    case LimitChoice::Kind::memory:
      return "the devices' memory";
  }
  return "";
}

// What decides the bound, where it is in closed form.
std::string closed_form(const Problem& problem, const StashLimit& limit, bool for_span,
                        Time bound) {
  for (const std::optional<StashBounds>& each :
       {stash_bounds(problem, limit), device_bounds(problem, limit)}) {
    if (!each) continue;
    const StashBound& one = for_span ? each->span : each->makespan;
    if (one.value == bound) {
      return fmt::format("in closed form ({})", in_words(one, problem.devices));
    }
  }
  return "in closed form (the work of the busiest device)";
}

}  // namespace

double Optimal::gap() const {
  if (bound <= Time{}) return 0;
  return static_cast<double>((value - bound).count()) / static_cast<double>(bound.count());
}

Optimal optimal(const Case& asked, const BranchStop& stop) {
  check(asked);
  const Layout layout = checked_layout(asked);
  const Costs costs = costs_of(asked, layout);
  check_length(asked, layout, costs, 1);
  const Problem problem = problem_of(asked, layout, costs, 1);
  const LimitChoice choice =
      read_limit("optimal", problem.knobs.at("limit"), static_cast<int>(problem.devices.size()));
  Optimal found;
  found.for_span = problem.knobs.at("goal") == "span";
  found.limit = in_words(choice);
  const auto stops = [&](const BranchKnown& known) {
    found.is_stopped = found.is_stopped || stop(known);
    return found.is_stopped;
  };
  const Program blank = blank_program(problem, "optimal", WeightRule::flush);
  std::vector<SearchedOrder> orders;  // one for each limit that is tried
  const Goal goal = found.for_span ? Goal::span : Goal::makespan;
  Program program = under_limit(problem, choice, true, goal, [&](const StashLimit& limit) {
    const SearchedOrder& order = orders.emplace_back(search_order(problem, limit, stops));
    // Where messages leave less room than was thought, the first limit is the one to prove.
    if (orders.size() == 1) {
      found.bound = order.bound;
      found.bound_by = order.bound_by_branch
                           ? "by branch and bound"
                           : closed_form(problem, limit, found.for_span, order.bound);
    }
    found.states += order.states;
    return freeze(blank, order.lists);
  });
  const SearchedOrder& best = *std::find_if(
      orders.begin(), orders.end(),
      [&](const SearchedOrder& order) { return freeze(blank, order.lists).ops == program.ops; });
  found.value = best.value;
  found.found_by = best.found_by_branch ? "branch and bound" : "zb_auto's rules and local search";
  found.is_stopped = found.is_stopped && !found.is_proved();
  found.asked = asked;
  found.asked.program = std::move(program);
  found.outcome = study(found.asked);
  return found;
}

std::string in_words(const Optimal& found) {
  const std::string under = found.limit.empty() ? "" : fmt::format(" under {}", found.limit);
  if (found.is_proved()) {
    return fmt::format("{}, optimal: no order{} is shorter", print(found.value), under);
  }
  return fmt::format("{}, at most {} above the shortest order{}, which takes at least {}",
                     print(found.value), percent(found.gap()), under, print(found.bound));
}

}  // namespace stageline
