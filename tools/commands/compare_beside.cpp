#include "tools/commands/compare_beside.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/progress_line.hpp"
#include "tools/compare/rank_by.hpp"
#include "tools/report/text/uncertainty.hpp"
#include "tools/study/figures/energy.hpp"

namespace stageline {

RowScenarios under_scenarios(const std::vector<Row>& rows, ScenarioRequest request, int jobs,
                             bool quiet) {
  RowScenarios found;
  if (request.perturbation.none()) return found;
  request.threads = jobs;
  request.stop = &catch_signals(SecondSignal::ends);
  ProgressLine line(!quiet);
  request.progress = shown_by(line);
  found.uncertain = uncertainty_of(rows, request);
  line.clear();
  for (const Synchrony synchrony : {Synchrony::synchronous, Synchrony::asynchronous}) {
    const std::vector<std::size_t> rivals = rivals_of(rows, synchrony, found.uncertain);
    set_best(rows, rivals, found.uncertain);
  }
  const Uncertainty* any = nullptr;
  bool frozen = false;
  std::vector<std::string> refused;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Uncertainty& one = found.uncertain[i];
    found.stopped =
        found.stopped || one.why_not == "interrupted" || (one.steps && one.steps->partial);
    if (one.steps) any = &one;
    if (!one.steps && !one.why_not.empty() && one.why_not != "interrupted") {
      refused.push_back(fmt::format("{}: no scenarios: {}", rows[i].schedule, one.why_not));
    }
    if (one.steps) {
      const std::string note =
          other_step_note(rows[i].schedule, *one.steps, rows[i].outcome->step_time);
      if (!note.empty()) refused.push_back(note);
    }
    if (one.steps && one.steps->engine == ScenarioEngine::frozen) {
      refused.push_back(frozen_note(rows[i].schedule, *one.steps));
      frozen = true;
    }
  }
  if (request.freeze && !frozen) refused.emplace_back(nothing_frozen);
  if (any == nullptr) throw Interrupted{"no scenario was finished, nothing was written", false};
  found.notes.push_back(fmt::format(
      "p95 and best are of {} scenarios, the same for all schedules; best: the share of them in "
      "which the schedule is the fastest that fits",
      any->steps->step.size()));
  if (found.stopped) {
    found.interrupted = interrupted_note(*any->steps, request.scenarios);
    found.notes.push_back(found.interrupted);
  }
  found.notes.insert(found.notes.end(), refused.begin(), refused.end());
  return found;
}

void check_measure(const ComparisonView& view, const std::vector<Row>& rows) {
  std::string why;
  for (const Row& row : rows) {
    if (!row.outcome) continue;
    if (view.by.measure == RankBy::Measure::energy) why = why_no_energy(row.asked);
    if (view.by.measure == RankBy::Measure::cost) {
      why = why_no_price(row.asked, view.budget.price_per_hour);
    }
    if (why.empty()) return;
  }
  if (!why.empty()) throw UsageError(fmt::format("--by {}: {}", name(view.by), why));
}

std::vector<std::string> amount_notes(const Case& asked, const ComparisonView& view) {
  const auto shown = [&](const char* column) {
    return std::find(view.columns.begin(), view.columns.end(), column) != view.columns.end();
  };
  const bool ranks =
      view.by.measure == RankBy::Measure::energy || view.by.measure == RankBy::Measure::cost;
  std::vector<std::string> notes;
  if (ranks || shown("energy")) notes = power_notes(asked);
  if (ranks || shown("cost") || view.budget.tokens > 0) {
    for (const std::string& note : price_notes(asked, view.budget.price_per_hour)) {
      notes.push_back(note);
    }
  }
  return notes;
}

void check_two(const std::vector<ScheduleSpec>& schedules, const Setting& setting) {
  if (setting.device_counts.size() > 1) {
    throw UsageError(fmt::format(
        "--why puts two schedules on one number of devices side by side, but there are {} numbers",
        setting.device_counts.size()));
  }
  if (schedules.size() == 2) return;
  throw UsageError(fmt::format(
      "--why puts two schedules side by side, but there {} {}; give --schedule 1f1b,zb_h1",
      schedules.size() == 1 ? "is" : "are", schedules.size()));
}

std::vector<NamedWaterfall> two_waterfalls(const std::vector<Row>& rows, CauseOrder order,
                                           const std::vector<Uncertainty>& uncertain) {
  for (const Row& row : rows) {
    if (!row.outcome) throw UsageError(fmt::format("--why: {}", row.why_not));
  }
  if (rows[0].outcome->samples() != rows[1].outcome->samples()) {
    throw UsageError(fmt::format(
        "--why compares steps of as many samples, but {} has {:g} in a step and {} {:g}",
        rows[0].schedule, rows[0].outcome->samples(), rows[1].schedule,
        rows[1].outcome->samples()));
  }
  std::vector<NamedWaterfall> both;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Waterfall waterfall = waterfall_of(rows[i].asked, *rows[i].outcome, order);
    if (i < uncertain.size() && uncertain[i].steps) {
      add_jitter(waterfall, uncertain[i].distribution.mean - uncertain[i].steps->nominal);
    }
    both.push_back({rows[i].outcome->schedule, std::move(waterfall)});
  }
  return both;
}

}  // namespace stageline
