// A plan as JSON. The keys are documented in tools/report/json/README.md and stable.
#pragma once

#include <string>
#include <vector>

#include "tools/report/text/plan.hpp"

namespace stageline::report {

/// {"front": […], "recommended": …, "sentence": …, "bound_ps": …, …}. `view` makes the commands;
/// `said`: all notes.
std::string plan_json(const Setting& setting, const planner::PlanRequest& request,
                      const planner::Plan& plan, const PlanView& view,
                      const std::vector<std::string>& said);

}  // namespace stageline::report
