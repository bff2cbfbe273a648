// Simulates and ranks the rows of a comparison, and words what surrounds them.
#include "tools/commands/compared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "tools/base/check_point.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/progress_line.hpp"
#include "tools/commands/typed.hpp"
#include "tools/commands/why_flags.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline {
namespace {

bool any_priced(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const Row& row) { return row.figures.rates.dollars.has_value(); });
}

// Empty where the fastest device is as fast in all rows.
std::string baselines_note(const std::vector<Row>& rows) {
  double least = 0;
  double most = 0;
  for (const Row& row : rows) {
    if (!row.outcome) continue;
    double rate = 0;
    for (const Device& device : row.asked.cluster().devices) rate = std::max(rate, device.rate);
    least = least == 0 ? rate : std::min(least, rate);
    most = std::max(most, rate);
  }
  if (least == most) return "";
  return fmt::format(
      "the speed-up of a row is over the fastest of its own devices, which of some rows is {:.3g}× "
      "as fast as of others: throughput compares them",
      most / least);
}

void say_interrupted(RowScenarios& found, const std::string& sentence) {
  found.stopped = true;
  found.interrupted = sentence;
  found.notes.push_back(sentence);
}

}  // namespace

CompareQuestion compare_question(const CompareFlags& flags) {
  const double within =
      flags.within.empty() ? default_within : parse_within(flags.within, "--within");
  ScenarioRequest scenarios = scenarios_of(flags.perturbations, compare_scenarios, false);
  SettingRequest request = request_of(flags.common);
  request.replicas_vary = !scenarios.perturbation.none();
  Setting setting = read_setting(request);
  const std::optional<CauseOrder> why = why_order(flags.why);
  if (why) check_two(all_schedules(flags.common), setting);
  return {std::move(request), std::move(setting), within, why, std::move(scenarios)};
}

ComparisonView Compared::view() const {
  ComparisonView view = plain_view;
  if (!found.uncertain.empty()) view.uncertain = &found.uncertain;
  return view;
}

Compared compared(const CompareFlags& flags, CompareQuestion question) {
  Compared result{std::move(question), {}};
  const CompareQuestion& asked = result.question;
  ComparisonView& view = result.plain_view;
  view = view_of(flags, asked.setting);
  const ScenarioRequest& scenarios = asked.scenarios;
  view.by = parse_rank_by(flags.by, "--by", !scenarios.perturbation.none());
  if (!flags.within.empty() && view.by != RankBy{}) {
    throw UsageError(fmt::format(
        "--within has nothing to apply to, since {} ranks the schedules, whatever memory they take; "
        "give --by time, or leave it out",
        name(view.by)));
  }
  std::size_t all_rows = 0;
  try {
    ProgressLine line(!flags.common.quiet);
    result.rows = compare(
        asked.request, asked.setting, all_schedules(flags.common), flags.jobs,
        [&](std::size_t done, std::size_t all) {
          all_rows = all;
          line(static_cast<std::int64_t>(done), static_cast<std::int64_t>(all));
        },
        asked.why ? Keep::spans : Keep::facts, &catch_signals(SecondSignal::ends), view.budget);
  } catch (const CalledOff&) {
    throw Interrupted{"no schedule was simulated, nothing was written", false};
  }
  const std::vector<Row>& rows = result.rows;
  view.cuts = cuts_differ(rows);
  check_measure(view, rows);
  if (rows.size() == all_rows) {
    result.found = under_scenarios(rows, scenarios, flags.jobs, flags.common.quiet);
    if (asked.why) result.both = two_waterfalls(rows, *asked.why, result.found.uncertain);
  } else if (!scenarios.perturbation.none()) {
    throw Interrupted{"no scenario was finished, nothing was written", false};
  } else if (asked.why) {
    throw Interrupted{"one of the two was not simulated, nothing was written", false};
  } else {
    say_interrupted(result.found,
                    fmt::format("interrupted: only {} of {} rows were simulated; the others are "
                                "not ranked",
                                rows.size(), all_rows));
  }
  const std::vector<Measured> measured = measured_by(view.by, rows, result.found.uncertain);
  for (const Synchrony synchrony : {Synchrony::synchronous, Synchrony::asynchronous}) {
    result.orders.push_back(view.by == RankBy{}
                                ? ranked(rows, synchrony, asked.within)
                                : ranked_by(rows, synchrony, measured, result.found.uncertain));
  }
  result.fits = std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.outcome && row.outcome->fit != Fit::no;
  });
  return result;
}

WaysToFit ways_so_far(const CompareFlags& flags, Compared& compared) {
  WaysToFit ways;
  if (flags.no_changes || compared.found.stopped) return ways;
  const CompareQuestion& asked = compared.question;
  const bool whole = until_stopped(&catch_signals(SecondSignal::ends), [&] {
    ways = ways_to_fit(asked.request, asked.setting, compared.rows, flags.jobs);
  });
  if (!whole) {
    say_interrupted(compared.found, "interrupted: changes after which it fits were not looked for");
  }
  return ways;
}

std::vector<Impossible> impossible_rows(const std::vector<Row>& rows) {
  const bool with_cut = cuts_differ(rows);
  std::vector<Impossible> reasons;
  for (const Row& row : rows) {
    if (row.outcome) continue;
    const int devices = row.asked.device_count();
    const auto same = std::find_if(reasons.begin(), reasons.end(), [&](const Impossible& known) {
      return known.devices == devices && known.why_not == row.why_not;
    });
    if (same == reasons.end()) {
      reasons.push_back({block_of(row), devices, row.why_not, row_name(row, with_cut)});
    } else {
      same->schedules += ", " + row_name(row, with_cut);
    }
  }
  return reasons;
}

std::string Impossible::sentence(bool sweep) const {
  return fmt::format("{}{}: not possible: {}", schedules,
                     sweep ? fmt::format(" on {} devices", devices) : "", why_not);
}

std::vector<std::string> compare_notes(const CompareFlags& flags, const Compared& compared) {
  const ComparisonView view = compared.view();
  const std::vector<Row>& rows = compared.rows;
  std::vector<std::string> said = read_as_notes(flags.common.schedules);
  said.insert(said.end(), compared.found.notes.begin(), compared.found.notes.end());
  if (!compared.both.empty()) {
    const std::string order = shapley_note(compared.both.front().waterfall);
    if (!order.empty()) said.push_back(order);
  }
  for (const std::string& note : notes(compared.question.setting)) said.push_back(note);
  const auto say = [&](const std::string& note) {
    if (std::find(said.begin(), said.end(), note) == said.end()) said.push_back(note);
  };
  const bool recomputes = std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.outcome && row.outcome->figures.recompute > 0;
  });
  if (recomputes) {
    say("recompute: the share of the devices' time that runs forwards again, which the bubble does "
        "not count");
  }
  for (const Row& row : rows) {
    if (!row.outcome) continue;
    for (const std::string& note : stream_notes(row.asked, *row.outcome)) say(note);
    if (!row.outcome->consistent()) {
      say(row.outcome->schedule + ": F≠B: backwards read other weights than their forwards");
    }
  }
  if (const std::string note = baselines_note(rows); !note.empty()) say(note);
  if (view.budget.tokens > 0 && !view.budget.price_per_hour && !any_priced(rows)) {
    say("the cost of the training is unknown: give --price, or a cluster whose devices have one");
  }
  for (const Row& row : rows) {
    if (!row.outcome) continue;
    for (const std::string& note : amount_notes(row.asked, view)) say(note);
  }
  return said;
}

std::string typed_question(const CompareFlags& flags) {
  return typed_setting(flags.common, flags.all_flags, {SettingOf::ranks}, {"devices"});
}

}  // namespace stageline
