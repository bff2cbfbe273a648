// Puts the sections of single answers together.
#include "tools/report/page/study_pages.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tools/report/page/diagram.hpp"
#include "tools/report/page/outcome_page.hpp"
#include "tools/report/page/sections.hpp"
#include "tools/report/text/overlay.hpp"
#include "tools/report/text/sensitivity.hpp"
#include "tools/report/text/uncertainty.hpp"

namespace stageline::report {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string point_name(const planner::PlanPoint& point, std::size_t place) {
  return fmt::format("{} {}", place + 1, title(point.candidate.spec));
}

PageRow point_row(const planner::Plan& plan, std::size_t place) {
  return {fmt::format("point{}", place + 1), place == plan.recommended ? "recommended" : ""};
}

// A series for each number of devices.
ScatterChart front_of(const planner::Plan& plan, const PlanView& view) {
  std::map<int, ScatterSeries> by_devices;
  for (std::size_t place = 0; place < plan.front.size(); ++place) {
    const planner::PlanPoint& point = plan.front[place];
    if (point.verdict.peak.empty()) continue;
    const int devices = point.devices();
    ScatterSeries& series = by_devices[devices];
    series.name = fmt::format("{} device{}", devices, devices == 1 ? "" : "s");
    ScatterPoint one{point_row(plan, place), point_name(point, place), point.verdict.step,
                     point.verdict.fullest(), point.verdict.fit};
    one.command = command_of(point, view);
    series.points.push_back(std::move(one));
  }
  ScatterChart chart;
  for (auto& [devices, series] : by_devices) chart.series.push_back(std::move(series));
  if (plan.bound > Time{}) {
    chart.bound = ReferenceValue{static_cast<double>(plan.bound.count()), "no candidate is faster"};
  }
  return chart;
}

// The recommendation with its command, or what is missing, and how far it is from the best.
std::vector<std::string> plan_advice(const planner::Plan& plan, const PlanView& view) {
  std::vector<std::string> advice;
  if (plan.recommended) {
    advice = {plan.sentence, command_of(plan.front[*plan.recommended], view)};
  } else {
    advice = {plan.missing ? "nothing fits: " + print_missing(plan.missing->need)
                           : "nothing that was tried can run"};
  }
  std::string searched = plan_search(plan);
  while (searched.ends_with('\n')) searched.pop_back();
  advice.push_back(std::move(searched));
  return advice;
}

}  // namespace

void add_notes(Page& page, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    const std::string text = "Note: " + note + ".";
    if (std::find(page.footnotes.begin(), page.footnotes.end(), text) == page.footnotes.end()) {
      page.footnotes.push_back(text);
    }
  }
}

Page page_with(const std::string& title, const PageWords& words) {
  std::vector<std::string> lines = lines_of(words.heading);
  Page page{title, "", {}, {}};
  if (!lines.empty()) {
    page.subtitle = lines.back();
    lines.pop_back();
  }
  for (const std::string& sentence : words.advice) lines.push_back("→ " + sentence);
  if (!lines.empty()) page.sections.push_back(text_section("", lines));
  add_notes(page, words.notes);
  return page;
}

Page uncertainty_page(const std::string& model, const std::vector<UncertainRow>& rows,
                      const std::vector<std::size_t>& order, const PageWords& words) {
  Page page = page_with("Distribution of the step · " + model, words);
  std::vector<NamedDistribution> distributions;
  for (const std::size_t i : order) {
    if (rows[i].steps->step.empty()) continue;
    distributions.push_back({rows[i].row.schedule, &*rows[i].steps, &rows[i].distribution});
  }
  const std::string scenarios = fmt::format("{} scenarios", rows[order.front()].steps->step.size());
  if (!distributions.empty()) {
    page.sections.push_back(distribution_section(scenarios, distributions));
  }
  page.sections.push_back(table_section("All schedules", uncertainty_sheet(rows, order)));
  std::vector<std::string> refused;
  for (const UncertainRow& row : rows) {
    if (!row.steps) refused.push_back(row.row.schedule + ": " + row.row.why_not);
  }
  if (!refused.empty()) page.sections.push_back(text_section("Not possible", refused));
  return page;
}

Page sensitivity_page(const std::string& model, const Outcome& outcome, const Sensitivity& found,
                      std::size_t most, const PageWords& words) {
  Page page =
      page_with(fmt::format("What the step hangs on · {} · {}", outcome.schedule, model), words);
  const Tornado tornado = sensitivity_tornado(found, most);
  if (!tornado.bars.empty()) {
    page.sections.push_back(
        tornado_section(fmt::format("{}: step {}", outcome.schedule, print(found.step)), tornado));
  }
  page.sections.push_back(table_section("All levers", sensitivity_sheet(found)));
  return page;
}

Page plan_page(const answers::PlanAnswer& found, const PlanView& view,
               const std::vector<std::string>& said) {
  const Setting& setting = found.setting;
  const planner::Plan& plan = found.plan;
  Page page = page_with("Plan · " + setting.model.name,
                        {plan_heading(setting, found.request), plan_advice(plan, view), said});
  const ScatterChart chart = front_of(plan, view);
  if (!chart.series.empty()) {
    page.sections.push_back(scatter_section("Memory against time", chart));
  }
  if (!plan.front.empty()) {
    std::vector<PageRow> rows;
    for (std::size_t place = 0; place < plan.front.size(); ++place) {
      rows.push_back(point_row(plan, place));
    }
    page.sections.push_back(
        table_section("The front", plan_sheet(setting.model, plan, view), rows));
  }
  if (!found.outcomes.empty()) {
    Page diagrams = page_of(setting, found.drawn, found.outcomes);
    for (PageSection& section : diagrams.sections) page.sections.push_back(std::move(section));
  }
  return page;
}

// In a table of a page: a row takes 75 bytes of the file.
constexpr std::size_t most_op_rows = 5'000;

Page overlay_page(const Overlay& overlay) {
  Page page{overlay.first.name + " and " + overlay.second.name, overlay_sentence(overlay), {}, {}};
  std::vector<DiagramRun> runs;
  for (const StepCut* const side : {&overlay.first, &overlay.second}) {
    DiagramRun run;
    run.drawing.title = side->word;
    run.drawing.subtitle = fmt::format("{} · step {}", side->name, print(side->step_time));
    run.drawing.timeline = side->timeline;
    runs.push_back(std::move(run));
  }
  page.sections.push_back(diagram_section("What ran when", runs));
  Sheet ops = overlay_sheet(overlay);
  std::string title = "All ops, the largest difference first";
  if (ops.rows.size() > most_op_rows) {
    title = fmt::format("The {} of {} ops that differ most; --json has all", most_op_rows,
                        ops.rows.size());
    ops.rows.resize(most_op_rows);
  }
  page.sections.push_back(table_section(std::move(title), ops));
  add_notes(page, overlay.notes);
  return page;
}

}  // namespace stageline::report
