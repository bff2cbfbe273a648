#include "tools/study/run/run.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/interference.hpp"
#include "sim/lower/passes.hpp"
#include "tools/base/check_point.hpp"
#include "tools/study/run/steps.hpp"

namespace stageline {
namespace {

// A synchronous schedule repeats its first two steps, which are alike or of opposite directions.
constexpr int repeated_steps = 2;

}  // namespace

Run run_of(Program program, const Costs& costs, bool validated) {
  look_at_check_point();
  Run run;
  run.program = complete(std::move(program), costs, &run.reordered);
  if (validated) validate(run.program);
  run.graph = compile(run.program, costs);
  run.times = simulate_together(run.graph, {costs.slowdown, costs.network.host});
  return run;
}

bool Runs::can_schedule(int steps) const {
  try {
    check_length(asked_, layout_, costs_, steps);
  } catch (const UsageError&) {
    return false;
  }
  return true;
}

Program Runs::program(int steps) {
  if (asked_.program) return program_of(asked_, layout_, costs_, steps);
  const Scheduler& scheduler = *asked_.spec.scheduler;
  if (!scheduler.begins_alike) return program_of(asked_, layout_, costs_, steps);
  if (scheduled_) {
    if (steps <= scheduled_->steps) return beginning_of(*scheduled_, steps);
    if (scheduler.synchrony == Synchrony::synchronous && scheduled_->steps >= repeated_steps) {
      check_length(asked_, layout_, costs_, steps);
      const int rounds = (steps + repeated_steps - 1) / repeated_steps;
      return beginning_of(repeated(beginning_of(*scheduled_, repeated_steps), rounds), steps);
    }
  }
  const bool flushed = scheduler.synchrony == Synchrony::synchronous;
  const int longest = std::max(steps, longest_);
  if (flushed && longest > repeated_steps && can_schedule(longest)) {
    scheduled_ = program_of(asked_, layout_, costs_, repeated_steps);
    return program(steps);
  }
  const int ahead = longest;
  scheduled_ = program_of(asked_, layout_, costs_, can_schedule(ahead) ? ahead : steps);
  return beginning_of(*scheduled_, steps);
}

bool Runs::repeat_one_step() {
  if (asked_.program) return repeats(asked_);
  const Scheduler& scheduler = *asked_.spec.scheduler;
  if (!scheduler.begins_alike || scheduler.synchrony == Synchrony::asynchronous) return false;
  return can_schedule(repeated_steps) && !second_step_differs();
}

bool Runs::second_step_differs() {
  if (asked_.program || !asked_.spec.scheduler->begins_alike) return false;
  if (!second_differs_) {
    second_differs_ = can_schedule(repeated_steps) &&
                      repeated(program(1), repeated_steps) != program(repeated_steps);
  }
  return *second_differs_;
}

const Run& Runs::keep(int steps, bool validated) {
  const auto found = runs_.find(steps);
  if (found != runs_.end()) return found->second;
  return runs_.emplace(steps, run_of(program(steps), costs_, validated)).first->second;
}

const Run& Runs::of(int steps) { return keep(steps, false); }

const Run& Runs::validated(int steps) { return keep(steps, true); }

Run Runs::take(int steps) { return std::move(runs_.extract(steps).mapped()); }

}  // namespace stageline
