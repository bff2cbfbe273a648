// stageline simulate: everything about one schedule.
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <utility>

#include "schedulers/aliases.hpp"
#include "sim/analysis/cycle_words.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/files.hpp"
#include "tools/base/table.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/perturbation_flags.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/why_flags.hpp"
#include "tools/compare/advice.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/page/outcome_page.hpp"
#include "tools/report/page/sections.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/memory_peak.hpp"
#include "tools/report/text/outcome_tables.hpp"
#include "tools/report/text/space_time.hpp"
#include "tools/report/text/staleness.hpp"
#include "tools/report/text/training.hpp"
#include "tools/report/text/uncertainty.hpp"
#include "tools/report/text/waterfall.hpp"
#include "tools/report/timeline/weights.hpp"
#include "tools/study/figures/energy.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/pace/stash_gap.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline {
namespace {

double part(Time some, Time whole) {
  return whole > Time{} ? to_seconds(some) / to_seconds(whole) : 0;
}

std::string peak_text(const Outcome& outcome) {
  if (!outcome.bytes_known()) return "peak memory unknown: the trace does not say bytes";
  const auto device = as_size(outcome.peak_device());
  const auto& limit = outcome.memory_limit[device];
  const bool fits = !limit || outcome.memory.device[device].peak <= *limit;
  if (outcome.grows) {
    return fmt::format(
        "memory grows as long as it runs: does NOT fit; {} on {} at the end of this run",
        print(outcome.memory.device[device].peak), outcome.program.devices[device]);
  }
  return fmt::format("peak memory {} on {}{}", print(outcome.memory.device[device].peak),
                     outcome.program.devices[device],
                     !limit  ? " (memory unknown: give --memory or --cluster)"
                     : !fits ? fmt::format(": does NOT fit in {}", print(*limit))
                             : fmt::format(" of {}: fits", print(*limit)));
}

std::string summary(const Case& asked, const Outcome& outcome) {
  std::string text = fmt::format("{}: step {}", outcome.schedule, print(outcome.step_time));
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
  text += fmt::format("{}; makespan of {} step{} {}\n", peak_text(outcome), outcome.program.steps,
                      outcome.program.steps == 1 ? "" : "s", print(outcome.metrics.makespan));
  return text;
}

std::string path_line(const Outcome& outcome) {
  std::string text = "critical path:";
  for (const PathShare& share : outcome.figures.path) {
    text += fmt::format(" {} {} ({})", share.kind, print(share.time),
                        percent(part(share.time, outcome.metrics.makespan)));
  }
  return text + "\n";
}

// What would fit, where this does not.
WaysToFit ways_of(const SettingRequest& request, const Setting& setting, const Case& asked,
                  const Outcome& outcome) {
  if (outcome.fit != Fit::no) return {};
  Row row{asked, outcome.schedule, outcome, ""};
  row.outcome->graph = {};
  return ways_to_fit(request, setting, {std::move(row)});
}

struct SimulateFlags {
  CommonFlags common;
  bool no_changes = false;
  bool timeline = false;
  bool full = false;
  std::string why;
  std::string html;
  SvgFlags svg;
  PerturbationFlags perturbations;
};

constexpr std::int64_t usual_jitter_scenarios = 1000;

void check_needs_why(const SimulateFlags& flags, bool why, bool uncertain) {
  if (why) return;
  if (any_picture(flags.svg)) {
    throw UsageError(
        "simulate draws where the step's time goes, and needs --why for it; `stageline draw` draws "
        "the timeline");
  }
  if (uncertain) {
    throw UsageError(
        "simulate takes --jitter and the like with --why, as a cause of the mean step; `stageline "
        "whatif` has the distribution");
  }
}

// With scenarios, of the mean step. Adds a note where they ask for what has no effect.
Waterfall explained(const Case& asked, const Outcome& outcome, CauseOrder order,
                    const ScenarioRequest& scenarios, Setting& setting) {
  Waterfall waterfall = waterfall_of(asked, outcome, order);
  if (scenarios.perturbation.none()) return waterfall;
  const ScenarioSteps steps = scenario_steps(asked, outcome, scenarios);
  if (scenarios.freeze && steps.engine != ScenarioEngine::frozen) {
    setting.notes.emplace_back(nothing_frozen);
  }
  const std::string note = other_step_note(outcome.schedule, steps, outcome.step_time);
  if (!note.empty()) setting.notes.push_back(note);
  add_jitter(waterfall, distribution_of(steps.step).mean - steps.nominal);
  return waterfall;
}

int run_simulate(const SimulateFlags& flags) {
  const CommonFlags& common = flags.common;
  const ScenarioRequest scenarios =
      scenarios_of(flags.perturbations, usual_jitter_scenarios, false);
  SettingRequest request = request_of(common);
  request.replicas_vary = !scenarios.perturbation.none();
  Setting setting = read_setting(request);
  check_one_count(setting, "simulate");
  const std::optional<CauseOrder> why = why_order(flags.why);
  check_pictures(flags.svg);
  check_needs_why(flags, why.has_value(), !scenarios.perturbation.none());
  const bool silent = to_stdout(common.json, flags.svg, flags.html);
  const TrainingBudget budget = budget_of(common, setting.model);
  const ScheduleSpec spec = one_schedule(common);
  const Case asked = searched_case(request, setting, spec, setting.device_counts.front());
  const Outcome outcome = study(asked, flags.html.empty() ? Curves::none : Curves::all);
  const int answer = outcome.fit == Fit::no ? 1 : 0;
  std::optional<Waterfall> waterfall;
  if (why) waterfall = explained(asked, outcome, *why, scenarios, setting);
  const WaysToFit ways = flags.no_changes ? WaysToFit{} : ways_of(request, setting, asked, outcome);
  if (!common.json.empty()) {
    write_file(common.json,
               outcome_json(setting, asked, outcome, flags.timeline, nullptr, budget,
                            waterfall ? &*waterfall : nullptr, flags.no_changes ? nullptr : &ways));
  }
  if (any_picture(flags.svg)) {
    write_waterfalls(flags.svg, {{outcome.schedule, *waterfall}}, setting.model.name,
                     notes(setting));
  }
  if (!flags.html.empty()) {
    Page page = page_of(setting, {&asked, 1}, {&outcome, 1});
    if (waterfall) {
      page.sections.push_back(waterfall_section("Where the step's time goes",
                                                waterfall_chart({{outcome.schedule, *waterfall}})));
    }
    write_page(flags.html, page);
  }
  if (silent) return answer;
  if (!common.quiet) print_wrapped(heading(setting, asked) + "\n");
  const TableView view{text_width(), flags.full, setting.model.tokens > 0};
  print_wrapped(summary(asked, outcome) +
                training_lines(asked, outcome, training_rates(asked, outcome, budget), budget) +
                energy_line(asked, step_energy(asked, outcome, budget.price_per_hour)) +
                peak_lines(outcome, flags.full) + path_line(outcome) + stream_report(outcome));
  for (const std::string& sentence : ways.sentences) print_wrapped("→ " + sentence + "\n");
  if (waterfall) {
    show("\n{}", waterfall_table(*waterfall, text_width()));
    if (flags.full) show("\n{}", device_waterfall_table(*waterfall, text_width()));
  }
  show("\n{}\n{}\n", device_table(outcome, view), stage_table(outcome, setting.model, view));
  const FigureOptions options{Time{}, figure_columns(), colour_wanted()};
  show("{}{}", space_time(outcome.timeline, options, flags.full),
       held_figure(outcome.program, outcome.timeline, outcome.versions, options));
  if (common.quiet) return answer;
  print_wrapped(space_time_legend({&outcome.timeline}) + "\n" + held_legend(outcome.versions));
  std::vector<std::string> said{
      fmt::format("cut \"{}\": {}", print(outcome.plan.partition), outcome.plan.reason)};
  const auto say = [&](const std::vector<std::string>& more) {
    said.insert(said.end(), more.begin(), more.end());
  };
  say(read_as_notes(common.schedules));
  say(power_notes(asked));
  say(price_notes(asked, budget.price_per_hour));
  say(notes(setting));
  if (std::string note = algorithms_note(asked, outcome); !note.empty()) say({std::move(note)});
  say(stream_notes(asked, outcome));
  print_notes(said);
  return answer;
}

void add_simulate(Flags command) {
  const auto flags = std::make_shared<SimulateFlags>();
  add_case_flags(command, flags->common);
  add_degree_flags(command, flags->common);
  add_setting(command, flags->common, "messages");
  add_budget_flags(command, flags->common);
  command.flag("--no-changes", flags->no_changes,
               "where nothing fits into memory, search no change that would, which takes a second "
               "or two");
  command.flag("--timeline", flags->timeline, "with --json: include every span")
      .needs(command.find("--json"));
  command.flag("--full", flags->full,
               "all devices and stages, and the peak of memory of each device; default: of more "
               "than 24, the ends and the extremes, and equal neighbours as one");
  add_why_flag(command, flags->why,
               "from all work spread evenly to the real step, cause by cause: imbalance, fill and "
               "drain, dependency, messages, collectives, optimizer, copies, memory limit; with "
               "--full by device, with --jitter and the like of the mean step");
  add_perturbation_flags(command, flags->perturbations, usual_jitter_scenarios);
  add_html_flag(command, flags->html,
                "write the whole result as one HTML page, to zoom and to ask, or - for stdout");
  add_svg_flag(command, flags->svg,
               "with --why: write where the step's time goes as an SVG file, or - for stdout");
  add_svg_style_flags(command, flags->svg);
  command.footer(
      "Example:\n  stageline simulate uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms "
      "\\\n    --schedule 1f1b --devices 4 --microbatches 8\n"
      "reports a step of 66 ms, and why. Exit code 1: it does not fit into memory.");
  command.runs([flags] { return run_simulate(*flags); });
}

}  // namespace

extern const Command simulate_command;
const Command simulate_command = {"simulate", "Simulate one schedule in full", add_simulate, ""};

}  // namespace stageline
