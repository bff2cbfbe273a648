// List scheduling under a limit of memory: a device that is free does the first op of a priority
// rule whose inputs have arrived, and W where nothing else is ready
// (schedulers/parts/list_schedule.hpp). The rules are
//
//   backward_first   I before F; the older micro-batch first, then the later stage
//   forward_first    F before I, as far as the limit lets it
//   critical_path    what has the longest way to the end of the step before it
//
// Stages lie straight (one a device), looped (stage s on device s mod p) or in a V (there and back
// again).
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1
//   0 |0123456a7bAcBdCeDfEgFhGH
//   1 | 01234a5b6c7dAeBfCgDhEFGH
//   2 |  012a3b4c5d6e7fAgBhCDEFGH
//   3 |   0a1b2c3d4e5f6g7hABCDEFGH
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1, limit p
//   0 |0123   aAb4cBd5C6eD7EfFgG  hH
//   1 | 0123 aAbBc4dCD5e6E f7gFG hH
//   2 |  012a3bAcBd4CDe5E6fFg7G hH
//   3 |   0a1b2c3dAB4eCD5f6gEF7hGH
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1, limit p, priority critical_path
//   0 |0123   aA4bB5cC6dD7eEfFgGhH
//   1 | 0123 aAbB4cC5dD6eE7fFgGhH
//   2 |  012a3bAcB4dC5eD6fE7gFhGH
//   3 |   0a1b2c3dA4eB5fC6gD7hEFGH
//
// figure: devices 2, microbatches 5, F 1, I 1, W 1, placement v, split no, limit 4
//   0 |0120aa1bb3aa4 bb2cc3dd cc  dd4ee    ee
//   1 | 0011 aaaabbbb2233 ccccdddd44   eeee
#include "schedulers/parts/list_schedule.hpp"
#include "schedulers/parts/placement_knobs.hpp"
#include "schedulers/parts/priorities.hpp"
#include "schedulers/parts/stash_limit.hpp"
#include "schedulers/scheduler.hpp"

namespace stageline::list_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"priority", "backward_first|forward_first|critical_path", "backward_first",
     "what a device does first of all that is ready"},
    limit_knob("memory"),
    {"split", "yes|no", "yes", "I and W apart; or B, both in one"},
    placement_knob,
    chunks_knob,
};

Placement place(int devices, const Knobs& knobs) {
  read_limit("list", knobs.at("limit"), devices);
  return placement_by_knobs("list", knobs, devices);
}

Rank rank_of(const Problem& problem, bool split) {
  const std::string& priority = problem.knobs.at("priority");
  if (priority == "forward_first") return forward_first();
  if (priority == "critical_path") return critical_path_first(problem, split);
  return backward_first();
}

Program schedule(const Problem& problem) {
  const Program blank = blank_program(problem, "list", WeightRule::flush);
  ListRules rules;
  rules.split = problem.knobs.at("split") == "yes";
  rules.rank = rank_of(problem, rules.split);
  const LimitChoice choice =
      read_limit("list", problem.knobs.at("limit"), static_cast<int>(problem.devices.size()));
  return under_limit(problem, choice, rules.split, Goal::span, [&](const StashLimit& limit) {
    return freeze(blank, list_schedule(problem, rules, limit).ops);
  });
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "list",
    "a priority rule run forward under a limit of memory",
    "Graham 1966, doi 10.1002/j.1538-7305.1966.tb01709.x",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::list_scheduler
