#include "tools/answers/compared.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/check_point.hpp"
#include "tools/study/evidence/evidence.hpp"
#include "tools/study/evidence/ties.hpp"
#include "tools/study/figures/energy.hpp"
#include "tools/study/study.hpp"

namespace stageline::answers {
namespace {

class Comparing {
 public:
  Comparing(const ComparisonQuestion& question, const Watch& watch)
      : question_(question), watch_(watch), found_{opened_setting(question)} {}

  Comparison answered() {
    const bool whole = simulate();
    check_measure();
    if (whole) {
      if (!question_.scenarios.perturbation.none()) draw_scenarios();
      if (question_.why) explain_both();
    }
    rank();
    if (question_.changes && !found_.stopped) look_for_ways();
    if (question_.alone) {
      found_.alone = one_device_advice(question_.setting, found_.setting, found_.rows);
    }
    if (question_.redrawn != Redrawn::none) redraw();
    return std::move(found_);
  }

 private:
  const ComparisonQuestion& question_;
  const Watch& watch_;
  Comparison found_;

  void say_interrupted(std::string sentence) {
    found_.stopped = true;
    found_.notes.push_back(sentence);
    found_.interrupted = std::move(sentence);
  }

  // Whether all rows are done.
  bool simulate() {
    std::size_t all_rows = 0;
    try {
      found_.rows = compare(
          question_.setting, found_.setting,
          question_.setting.schedules.empty() ? parse_schedules("all")
                                              : question_.setting.schedules,
          question_.workers,
          [&](std::size_t done, std::size_t all) {
            all_rows = all;
            if (watch_.progress) {
              watch_.progress(static_cast<std::int64_t>(done), static_cast<std::int64_t>(all));
            }
          },
          question_.keep, watch_.stop, question_.budget);
    } catch (const CalledOff&) {
      if (watch_.stop == nullptr) throw;
      throw NothingKnown{"no schedule was simulated"};
    }
    const std::size_t done = found_.rows.size();
    if (done == all_rows) return true;
    if (!question_.scenarios.perturbation.none()) throw NothingKnown{"no scenario was finished"};
    if (question_.why) throw NothingKnown{"one of the two was not simulated"};
    say_interrupted(
        fmt::format("interrupted: only {} of {} rows were simulated; the others are not ranked",
                    done, all_rows));
    return false;
  }

  // Throws UsageError where no row knows what rows are ranked by.
  void check_measure() const {
    std::string why;
    for (const Row& row : found_.rows) {
      if (!row.outcome) continue;
      if (question_.by.measure == RankBy::Measure::energy) why = why_no_energy(row.asked);
      if (question_.by.measure == RankBy::Measure::cost) {
        why = why_no_price(row.asked, question_.budget.price_per_hour);
      }
      if (why.empty()) return;
    }
    if (!why.empty()) throw UsageError(fmt::format("--by {}: {}", name(question_.by), why));
  }

  void draw_scenarios() {
    ScenarioRequest request = question_.scenarios;
    request.threads = question_.workers;
    request.stop = watch_.stop;
    request.progress = watch_.progress;
    std::vector<Uncertainty>& uncertain = found_.uncertain;
    uncertain = uncertainty_of(found_.rows, request);
    for (const Synchrony synchrony : {Synchrony::synchronous, Synchrony::asynchronous}) {
      set_best(found_.rows, rivals_of(found_.rows, synchrony, uncertain), uncertain);
    }
    const auto any = std::find_if(uncertain.rbegin(), uncertain.rend(),
                                  [](const Uncertainty& one) { return one.steps.has_value(); });
    const std::vector<std::string> refused = notes_on_scenarios();
    if (any == uncertain.rend()) throw NothingKnown{"no scenario was finished"};
    found_.notes.push_back(fmt::format(
        "p95 and best are of {} scenarios, the same for all schedules; best: the share of them in "
        "which the schedule is the fastest that fits",
        any->steps->step.size()));
    if (found_.stopped) say_interrupted(interrupted_note(*any->steps, request.scenarios));
    found_.notes.insert(found_.notes.end(), refused.begin(), refused.end());
  }

  // Why rows have none, and how theirs came about. Sees whether they were cut short.
  std::vector<std::string> notes_on_scenarios() {
    std::vector<std::string> notes;
    bool frozen = false;
    for (std::size_t i = 0; i < found_.rows.size(); ++i) {
      const Uncertainty& one = found_.uncertain[i];
      const std::string& schedule = found_.rows[i].schedule;
      const bool cut_short = one.why_not == "interrupted";
      found_.stopped = found_.stopped || cut_short || (one.steps && one.steps->partial);
      if (!one.steps) {
        if (one.why_not.empty() || cut_short) continue;
        notes.push_back(fmt::format("{}: no scenarios: {}", schedule, one.why_not));
        continue;
      }
      std::string note = other_step_note(schedule, *one.steps, found_.rows[i].outcome->step_time);
      if (!note.empty()) notes.push_back(std::move(note));
      if (one.steps->engine != ScenarioEngine::frozen) continue;
      notes.push_back(frozen_note(schedule, *one.steps));
      frozen = true;
    }
    if (question_.scenarios.freeze && !frozen) notes.emplace_back(nothing_frozen);
    return notes;
  }

  // The waterfalls of the two rows; with scenarios, of their mean step. Throws UsageError where one
  // of them is not possible, or where they have other samples in a step.
  void explain_both() {
    const std::vector<Row>& rows = found_.rows;
    for (const Row& row : rows) {
      if (!row.outcome) throw UsageError(fmt::format("--why: {}", row.why_not));
    }
    if (rows[0].outcome->samples() != rows[1].outcome->samples()) {
      throw UsageError(fmt::format(
          "--why compares steps of as many samples, but {} has {:g} in a step and {} {:g}",
          rows[0].schedule, rows[0].outcome->samples(), rows[1].schedule,
          rows[1].outcome->samples()));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Waterfall waterfall = waterfall_of(rows[i].asked, *rows[i].outcome, *question_.why);
      if (i < found_.uncertain.size() && found_.uncertain[i].steps) {
        const Uncertainty& one = found_.uncertain[i];
        add_jitter(waterfall, one.distribution.mean - one.steps->nominal);
      }
      found_.both.push_back({rows[i].outcome->schedule, std::move(waterfall)});
    }
  }

  void rank() {
    const std::vector<Row>& rows = found_.rows;
    const std::vector<Measured> measured = measured_by(question_.by, rows, found_.uncertain);
    for (const Synchrony synchrony : {Synchrony::synchronous, Synchrony::asynchronous}) {
      found_.orders.push_back(
          question_.by == RankBy{}
              ? ranked(rows, synchrony, question_.within.value_or(default_within))
              : ranked_by(rows, synchrony, measured, found_.uncertain));
    }
    found_.fits = std::any_of(rows.begin(), rows.end(), [](const Row& row) {
      return row.outcome && row.outcome->fit != Fit::no;
    });
    if (question_.by == RankBy{} && !found_.sweep()) look_for_ties(found_.orders.front());
  }

  // Steps of language models alone have a range.
  void look_for_ties(RankedRows& order) {
    if (!order.recommended) return;
    const RowDifferences differences = differences_of(found_.rows);
    std::vector<AdvisedRow> advised;
    std::vector<std::size_t> places;
    for (const std::size_t i : order.rows) {
      const Row& row = found_.rows[i];
      const Outcome& outcome = *row.outcome;
      if (outcome.fit == Fit::no || !(outcome.throughput > 0)) continue;
      if (outcome.lower_bound) continue;
      if (!intervals_of(row.asked.model(), row.asked.ranked()).step) return;
      const Bytes peak =
          outcome.bytes_known() ? nth(outcome.memory.device, outcome.peak_device()).peak : Bytes{};
      advised.push_back({row_name(row, differences), outcome.schedule, 1 / outcome.throughput, peak,
                         outcome.schedule});
      places.push_back(i);
    }
    const std::vector<std::size_t> ties = rows_that_tie(advised);
    for (const std::size_t tie : ties) found_.tied.push_back(places[tie]);
    if (!question_.within && ties.size() > 1) {
      order = ranked(found_.rows, order.synchrony, default_within,
                     Tie{places[best_of_ties(advised, ties)], ties.size()});
    }
    found_.ties = notes_on_advice(advised, row_name(found_.rows[*order.recommended], differences));
  }

  void look_for_ways() {
    const bool whole = until_stopped(watch_.stop, [&] {
      found_.ways = ways_to_fit(question_.setting, found_.setting, found_.rows, question_.workers);
    });
    if (!whole) {
      say_interrupted("interrupted: changes after which it fits were not looked for");
    }
  }

  // The recommended row and the next of its block that fits; without one that fits, the first two.
  std::vector<std::size_t> best_two() const {
    if (!found_.both.empty()) return {0, 1};
    for (const RankedRows& order : found_.orders) {
      if (order.rows.empty()) continue;
      std::vector<std::size_t> best{order.recommended.value_or(order.rows.front())};
      const bool fits = found_.rows[best.front()].outcome->fit != Fit::no;
      for (const std::size_t row : order.rows) {
        if (row == best.front() || best.size() > 1) continue;
        if (!fits || found_.rows[row].outcome->fit != Fit::no) best.push_back(row);
      }
      return best;
    }
    return {};
  }

  void redraw() {
    for (const std::size_t row : best_two()) {
      found_.drawn.push_back(found_.rows[row].asked);
      found_.outcomes.push_back(study(found_.drawn.back(), Curves::all));
    }
    found_.waterfalls = found_.both;
    const bool none = found_.outcomes.empty() || found_.stopped;
    if (none || question_.redrawn != Redrawn::explained) return;
    if (found_.waterfalls.empty()) {
      for (std::size_t i = 0; i < found_.outcomes.size(); ++i) {
        const Outcome& outcome = found_.outcomes[i];
        found_.waterfalls.push_back({outcome.schedule, waterfall_of(found_.drawn[i], outcome)});
      }
    }
    Sensitivity sensitivity = sensitivity_of(found_.drawn.front(), found_.outcomes.front(),
                                             question_.workers, watch_.stop);
    if (!sensitivity.effects.empty()) found_.sensitivity = std::move(sensitivity);
  }
};

}  // namespace

Comparison answer(const ComparisonQuestion& question, const Watch& watch) {
  return Comparing(question, watch).answered();
}

}  // namespace stageline::answers
