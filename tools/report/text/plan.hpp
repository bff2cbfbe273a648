// A plan as text and as a chart: the front as a table, the recommendation with the command that
// reproduces it, how far it is from the best, what was left out.
#pragma once

#include <string>
#include <vector>

#include "tools/answers/planned.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/planner/planner.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/report/text/sheet.hpp"

namespace stageline::report {

struct PlanView {
  int width = 0;         // the most columns of a line; 0: any
  std::size_t top = 10;  // rows of the front; 0: all
  bool flags = false;    // with the command of every row that is shown
  /// What a point's flags go behind: "stageline simulate resnet50-cpu --link 2.5GB/s".
  std::string command = "stageline simulate";
};

/// The model, and a line on devices and samples.
std::string plan_heading(const Setting& setting, const planner::PlanRequest& request);

/// A row for each point of the front, the fastest first, numbered; → marks the recommended one,
/// which is shown whatever `top` says. Empty where nothing fits.
std::string plan_table(const Model& model, const planner::Plan& plan, const PlanView& view);

/// All points of the front, with the figures behind the cells and the command of each.
Sheet plan_sheet(const Model& model, const planner::Plan& plan, const PlanView& view);

/// The command of a point, on one line.
std::string command_of(const planner::PlanPoint& point, const PlanView& view);

/// The recommendation and its command; with `flags`, a command for each row that is shown. Where
/// nothing fits, what is missing least.
std::string plan_answer(const planner::Plan& plan, const PlanView& view);

/// "optimal over what was searched: 12 480 candidates, …" where everything was simulated or pruned;
/// else the bound, the gap to it, and what was not looked at.
std::string plan_search(const planner::Plan& plan);

/// Heading (unless `quiet`), front, recommendation and search; with `dropped` what was left out;
/// wrapped.
std::string plan_text(const answers::PlanAnswer& found, const PlanView& view, bool quiet,
                      bool dropped);

/// What was refused, with the reason, and what was pruned, with its bound.
std::string plan_dropped(const planner::Plan& plan, int width);

/// "tried 1 234 · pruned 11 902 · left 320 · best 7.613 s · bound 7.200 s"
std::string progress_words(const planner::PlanProgress& progress);

/// "12 480"
std::string grouped(std::int64_t count);

/// The fastest step of the front over the bound, less 1; 0 where one of them is not known.
double plan_gap(const planner::Plan& plan);

/// Peak memory against the step: a stair for each number of devices, points numbered as in the
/// table, with the bound of the step and, where all points have the same, the memory of a device.
Chart plan_chart(const Setting& setting, const planner::PlanRequest& request,
                 const planner::Plan& plan);

/// A throughput's unit: "images/s".
std::string throughput_unit(const Model& model);

}  // namespace stageline::report
