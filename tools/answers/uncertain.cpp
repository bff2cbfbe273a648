#include "tools/answers/uncertain.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "tools/study/figures/notes.hpp"

namespace stageline::answers {
namespace {

// Nothing where none is asked for, or a signal came first.
std::optional<LongRun> long_run_of(const WhatIfQuestion& question,
                                   const ScenarioRequest& scenarios) {
  if (!question.failures || !question.run) return std::nullopt;
  LongRunRequest request;
  request.failures = *question.failures;
  request.work = *question.run;
  request.scenarios = scenarios.scenarios;
  request.seed = scenarios.perturbation.seed;
  request.threads = scenarios.threads;
  request.stop = scenarios.stop;
  return long_run(request);
}

// Notes on settings without effect, each once: not those of the setting again.
std::vector<std::string> notes_on_settings(const WhatIfAnswer& found) {
  const std::vector<std::string> known = notes(found.setting);
  std::vector<std::string> said;
  const auto has = [](const std::vector<std::string>& all, const std::string& note) {
    return std::find(all.begin(), all.end(), note) != all.end();
  };
  for (const UncertainRow& row : found.rows) {
    if (!row.row.outcome) continue;
    for (std::string& note : setting_notes(row.row.asked, *row.row.outcome)) {
      if (!has(known, note) && !has(said, note)) said.push_back(std::move(note));
    }
  }
  return said;
}

void add_notes_on_scenarios(const ScenarioRequest& scenarios, WhatIfAnswer& found) {
  bool frozen = false;
  for (const UncertainRow& row : found.rows) {
    if (!row.steps) continue;
    std::string note = other_step_note(row.row.schedule, *row.steps, row.row.outcome->step_time);
    if (!note.empty()) found.notes.push_back(std::move(note));
    if (row.steps->engine != ScenarioEngine::frozen) continue;
    found.notes.push_back(frozen_note(row.row.schedule, *row.steps));
    frozen = true;
  }
  if (scenarios.freeze && !frozen) found.notes.emplace_back(nothing_frozen);
  const Case shown = found.best().row.asked;
  if (shown.sharing == Sharing::fair) {
    found.notes.emplace_back(
        "links are shared fairly: what is critical is not looked for (--sharing fifo does)");
  }
}

// Says what `stop` left out, also of the long run.
void note_stop(const WhatIfQuestion& question, const ScenarioRequest& scenarios,
               WhatIfAnswer& found) {
  const std::int64_t all = scenarios.scenarios;
  if (found.stopped) {
    found.notes.push_back(interrupted_note(*found.best().steps, all));
  } else if (question.run && (!found.run || found.run->scenarios < all)) {
    found.stopped = true;
    found.notes.push_back(fmt::format("interrupted: --run is played in only {} of {} scenarios",
                                      found.run ? found.run->scenarios : 0, all));
  }
}

}  // namespace

bool WhatIfAnswer::fits() const {
  return std::any_of(rows.begin(), rows.end(),
                     [](const UncertainRow& row) { return row.steps && row.fits(); });
}

WhatIfAnswer answer(const WhatIfQuestion& question, const Watch& watch) {
  WhatIfAnswer found{opened_setting(question)};
  ScenarioRequest scenarios = question.scenarios;
  scenarios.stop = watch.stop;
  scenarios.progress = watch.progress;
  found.rows =
      under_uncertainty(question.setting, found.setting, schedules_of(question), scenarios);
  const auto cut_short = [&](const UncertainRow& row) {
    return row.steps ? row.steps->partial : watch.stop != nullptr && watch.stop->load();
  };
  found.stopped = std::any_of(found.rows.begin(), found.rows.end(), cut_short);
  found.order = ranked_by_quantile(found.rows, question.by);
  if (found.order.empty()) throw NothingKnown{"no scenario was finished"};
  found.run = long_run_of(question, scenarios);
  found.notes = notes_on_settings(found);
  add_notes_on_scenarios(scenarios, found);
  note_stop(question, scenarios, found);
  return found;
}

}  // namespace stageline::answers
