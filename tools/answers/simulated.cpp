#include "tools/answers/simulated.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tools/compare/uncertainty.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline::answers {
namespace {

// With scenarios, of the mean step. Adds a note where they ask for what has no effect.
Waterfall explained(const SimulationQuestion& question, Simulation& found) {
  const ScenarioRequest& scenarios = question.scenarios;
  Waterfall waterfall = waterfall_of(found.asked, found.outcome, *question.why);
  if (scenarios.perturbation.none()) return waterfall;
  const ScenarioSteps steps = scenario_steps(found.asked, found.outcome, scenarios);
  std::vector<std::string>& notes = found.setting.notes;
  if (scenarios.freeze && steps.engine != ScenarioEngine::frozen) {
    notes.emplace_back(nothing_frozen);
  }
  std::string note = other_step_note(found.outcome.schedule, steps, found.outcome.step_time);
  if (!note.empty()) notes.push_back(std::move(note));
  add_jitter(waterfall, distribution_of(steps.step).mean - steps.nominal);
  return waterfall;
}

}  // namespace

Simulation simulated(OpenedCase opened, Curves curves) {
  Outcome outcome = study(opened.asked, curves);
  return {std::move(opened.setting), std::move(opened.asked), std::move(outcome)};
}

Simulation answer(const SimulationQuestion& question) {
  Simulation found = simulated(opened_case(question), question.curves);
  if (question.why) found.waterfall = explained(question, found);
  if (question.why && question.from_peak) {
    found.from_peak =
        step_parts(question.setting, found.setting, found.asked, found.outcome, *found.waterfall);
  }
  if (question.changes) {
    found.ways = ways_to_fit(question.setting, found.setting, found.asked, found.outcome);
  }
  return found;
}

AskedScheduler asked_scheduler(const Case& asked, const std::string& name) {
  const Layout layout = checked_layout(asked);
  const Costs costs = costs_of(asked, layout);
  AskedScheduler scheduler;
  scheduler.problem = problem_of(asked, layout, costs, std::max(1, asked.steps));
  scheduler.blank =
      blank_program(scheduler.problem, name, asked.weights.value_or(WeightRule::flush));
  scheduler.blank.independent_w.assign(scheduler.problem.placement.stage.size(), false);
  scheduler.blank.ops.resize(scheduler.blank.devices.size());
  return scheduler;
}

Outcome drawn_outcome(const Case& asked) { return study(asked, Curves::all); }

WaysToFit ways_to_fit(const SettingRequest& request, const Setting& setting, const Case& asked,
                      const Outcome& outcome) {
  if (outcome.fit != Fit::no) return {};
  Row row{asked, outcome.schedule, outcome, ""};
  row.outcome->graph = {};
  return ways_to_fit(request, setting, {std::move(row)});
}

}  // namespace stageline::answers
