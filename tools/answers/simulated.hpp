// One schedule in full: its outcome, where the time of its step goes, and what would fit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/problem.hpp"
#include "tools/answers/question.hpp"
#include "tools/answers/step_parts.hpp"
#include "tools/compare/advice.hpp"
#include "tools/study/study.hpp"
#include "tools/study/whatif/scenario_runs.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline::answers {

struct SimulationQuestion : SettingQuestion {
  Curves curves = Curves::none;     // whether the outcome holds memory over time
  std::optional<CauseOrder> why{};  // the order of causes; empty: no waterfall
  bool from_peak = false;           // with `why`: the step's parts from the devices' peak on, too
  ScenarioRequest scenarios{};      // the waterfall is of their mean step; none: of the nominal one
  bool changes = false;             // search what would fit, where this does not
};

struct Simulation {
  Setting setting;
  Case asked;
  Outcome outcome;
  std::optional<Waterfall> waterfall{};
  std::vector<StepPart> from_peak{};  // that add up to the waterfall's step; empty: not asked
  WaysToFit ways{};
};

/// Throws what opened_case() and study() throw.
Simulation answer(const SimulationQuestion& question);

/// The same of a case that is open, without waterfall and changes.
Simulation simulated(OpenedCase opened, Curves curves = Curves::none);

/// What a scheduler is asked on a case, with a program that has no ops yet.
struct AskedScheduler {
  Problem problem;
  Program blank;
};
/// `name`: of the schedule that is to be made. Throws what laying out and pricing the case throw.
AskedScheduler asked_scheduler(const Case& asked, const std::string& name);

/// The outcome of a case with its memory over time, to be drawn.
Outcome drawn_outcome(const Case& asked);

/// What would fit, where the outcome does not.
WaysToFit ways_to_fit(const SettingRequest& request, const Setting& setting, const Case& asked,
                      const Outcome& outcome);

}  // namespace stageline::answers
