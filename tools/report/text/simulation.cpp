#include "tools/report/text/simulation.hpp"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "sim/analysis/cycle_words.hpp"
#include "sim/base/index.hpp"
#include "sim/text/figure.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/memory_peak.hpp"
#include "tools/report/text/outcome_tables.hpp"
#include "tools/report/text/space_time.hpp"
#include "tools/report/text/staleness.hpp"
#include "tools/report/text/step_parts.hpp"
#include "tools/report/text/training.hpp"
#include "tools/report/text/waterfall.hpp"
#include "tools/report/timeline/weights.hpp"
#include "tools/study/evidence/evidence.hpp"
#include "tools/study/figures/energy.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/figures/reported_memory.hpp"
#include "tools/study/pace/stash_gap.hpp"

namespace stageline::report {
namespace {

double share_of_time(Time some, Time whole) {
  return whole > Time{} ? to_seconds(some) / to_seconds(whole) : 0;
}

// " (8.90–10.6)", where there is an interval.
std::string behind(const std::string& value, const std::optional<Interval>& interval) {
  if (!interval) return "";
  return fmt::format(" ({})", range_of(value, interval->low, interval->high));
}

std::string with_range(const std::string& value, const std::optional<Interval>& interval) {
  return value + behind(value, interval);
}

// The runs that each range is of.
std::string range_lines(const Intervals& intervals, const Outcome& outcome) {
  std::string text;
  if (intervals.step) text += "range          step: " + provenance_of(*intervals.step) + "\n";
  if (intervals.memory && outcome.bytes_known()) {
    text += "range          memory: " + provenance_of(*intervals.memory) + "\n";
  }
  return text;
}

std::string peak_text(const Outcome& outcome, const std::optional<Interval>& interval) {
  if (!outcome.bytes_known()) return "peak memory unknown: the trace does not say bytes";
  const auto device = as_size(outcome.peak_device());
  const auto& limit = outcome.memory_limit[device];
  const bool fits = !limit || outcome.memory.device[device].peak <= *limit;
  if (outcome.grows) {
    return fmt::format(
        "memory grows as long as it runs: does NOT fit; {} on {} at the end of this run",
        print(outcome.memory.device[device].peak), outcome.program.devices[device]);
  }
  return fmt::format("peak memory {} on {}{}",
                     with_range(print(outcome.memory.device[device].peak), interval),
                     outcome.program.devices[device],
                     !limit  ? " (memory unknown: give --memory or --cluster)"
                     : !fits ? fmt::format(": does NOT fit in {}", print(*limit))
                             : fmt::format(" of {}: fits", print(*limit)));
}

std::string summary_of(const Case& asked, const Outcome& outcome, const Intervals& intervals) {
  std::string text = fmt::format("{}: step {}", outcome.schedule,
                                 with_range(print(outcome.step_time), intervals.step));
  if (outcome.step_time > Time{}) {
    text +=
        fmt::format(" · {:.5g} {} · {:.2f}× one {} · bubble {}", outcome.throughput,
                    outcome.throughput_unit, outcome.speedup,
                    asked.ranked ? "pipeline rank" : "device", percent(outcome.bubble_fraction));
  }
  if (const double share = outcome.figures.recompute; share > 0) {
    text += fmt::format(" · recompute {}", percent(share));
  }
  if (const double share = outcome.figures.blocking; share > 0) {
    text += fmt::format(" · blocking collectives {}", percent(share));
  }
  if (const double share = outcome.figures.hidden; share > 0) {
    text += fmt::format(" · hidden collectives {}", percent(share));
  }
  text += "\n";
  // The cycle of a flushed step is its critical path.
  if (outcome.period && outcome.synchrony == Synchrony::asynchronous) {
    text += fmt::format("decided by: {}\n",
                        in_words(*outcome.period, outcome.round, outcome.program.devices));
  }
  // Orders that keep I and W apart look for the shortest one.
  const std::optional<StashGap> gap =
      outcome.figures.is_apart ? stash_gap(asked, outcome) : std::nullopt;
  if (gap) text += in_words(*gap) + "\n";
  text += fmt::format("{}; makespan of {} step{} {}\n", peak_text(outcome, intervals.memory),
                      outcome.program.steps, outcome.program.steps == 1 ? "" : "s",
                      print(outcome.metrics.makespan));
  return text;
}

std::string path_line(const Outcome& outcome) {
  std::string text = "critical path:";
  for (const PathShare& share : outcome.figures.path) {
    text += fmt::format(" {} {} ({})", share.kind, print(share.time),
                        percent(share_of_time(share.time, outcome.metrics.makespan)));
  }
  return text + "\n";
}

}  // namespace

std::string simulation_text(const answers::Simulation& found, const SimulationView& view) {
  const Case& asked = found.asked;
  const Outcome& outcome = found.outcome;
  const TrainingBudget& budget = view.budget;
  std::string lines = view.quiet ? "" : heading(found.setting, asked) + "\n";
  const Intervals intervals = intervals_of(asked.model, asked.ranked.get());
  lines += summary_of(asked, outcome, intervals) + range_lines(intervals, outcome) +
           training_lines(asked, outcome, training_rates(asked, outcome, budget), budget) +
           energy_line(asked, step_energy(asked, outcome, budget.price_per_hour)) +
           peak_lines(outcome, view.full) + reported_line(asked, outcome) + path_line(outcome) +
           stream_report(outcome);
  for (const std::string& sentence : found.ways.sentences) lines += "→ " + sentence + "\n";
  std::string text = wrapped(lines, view.width);
  if (!found.from_peak.empty()) {
    text += "\n" + step_parts_table(found.from_peak, found.waterfall->step, view.width) +
            wrapped(first_changes(found.from_peak), view.width);
  } else if (found.waterfall) {
    text += "\n" + waterfall_table(*found.waterfall, view.width);
  }
  if (found.waterfall && view.full) {
    text += "\n" + device_waterfall_table(*found.waterfall, view.width);
  }
  const Model& model = found.asked.model;
  const TableView table{view.width, view.full, model.tokens > 0};
  text += "\n" + device_table(outcome, table) + "\n" + stage_table(outcome, model, table) + "\n";
  const FigureOptions options{Time{}, view.columns, view.colour};
  text += space_time(outcome.timeline, options, view.full) +
          held_figure(outcome.program, outcome.timeline, outcome.versions, options);
  if (view.quiet) return text;
  return text +
         wrapped(space_time_legend({&outcome.timeline}) + "\n" + held_legend(outcome.versions),
                 view.width);
}

std::vector<std::string> simulation_notes(const answers::Simulation& found,
                                          const TrainingBudget& budget,
                                          const std::vector<std::string>& read_as) {
  const Outcome& outcome = found.outcome;
  std::vector<std::string> said{
      fmt::format("cut \"{}\": {}", print(outcome.plan.partition), outcome.plan.reason)};
  const auto say = [&](const std::vector<std::string>& more) {
    said.insert(said.end(), more.begin(), more.end());
  };
  say(read_as);
  say(power_notes(found.asked));
  say(price_notes(found.asked, budget.price_per_hour));
  say(notes(found.setting));
  if (std::string note = algorithms_note(found.asked, outcome); !note.empty()) {
    said.push_back(std::move(note));
  }
  say(stream_notes(found.asked, outcome));
  return said;
}

}  // namespace stageline::report
