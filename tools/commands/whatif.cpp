// stageline whatif: the distribution of the step under jitter, slow devices and pauses, and which
// schedule is the best how often.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/files.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/perturbation_flags.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/progress_line.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/typed.hpp"
#include "tools/compare/long_run.hpp"
#include "tools/inputs/device_rates.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/page/study_pages.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/uncertainty.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline {
namespace {

constexpr std::size_t coloured_schedules = 6;  // curves of the picture

struct WhatIfFlags {
  CommonFlags common;
  SvgFlags svg;
  std::string html;
  PerturbationFlags perturbations;
  std::string by = "p95";
  std::string mtbf;
  std::string checkpoint;
  std::string restart;
  std::string interval;
  std::string run;
  int threads = 0;
};

constexpr std::int64_t usual_whatif_scenarios = 10'000;

std::string words_of(double seconds) {
  if (seconds >= 2 * 86400) return fmt::format("{:.1f} days", seconds / 86400);
  if (seconds >= 2 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  if (seconds >= 120) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} s", seconds);
}

// Nothing where no failures are asked for.
std::optional<Failures> failures_of(const WhatIfFlags& flags) {
  if (flags.mtbf.empty() && flags.checkpoint.empty()) {
    for (const auto& [name, given] : {std::pair{"--run", &flags.run},
                                      {"--restart", &flags.restart},
                                      {"--checkpoint-interval", &flags.interval}}) {
      if (given->empty()) continue;
      throw UsageError(
          fmt::format("{} is of a run with failures; give --mtbf and --checkpoint", name));
    }
    return std::nullopt;
  }
  if (flags.mtbf.empty() || flags.checkpoint.empty()) {
    throw UsageError(
        "--mtbf and --checkpoint belong together: the mean time between failures of the whole run, "
        "and what a checkpoint costs (--mtbf 8h --checkpoint 60s)");
  }
  Failures failures;
  failures.between = seconds_of(flags.mtbf, "--mtbf");
  failures.checkpoint = seconds_of(flags.checkpoint, "--checkpoint");
  if (!flags.restart.empty()) failures.restart = seconds_of(flags.restart, "--restart");
  if (!flags.interval.empty()) {
    failures.interval = seconds_of(flags.interval, "--checkpoint-interval");
  }
  return failures;
}

std::string text_of(const Failures& failures) {
  const UsefulShare share = useful_share(failures);
  return fmt::format(
      "failures every {}, a checkpoint of {} every {}: {} of the time is useful work (Young's "
      "interval {}, Daly's {})",
      words_of(failures.between), words_of(failures.checkpoint), words_of(share.interval),
      percent(share.useful), words_of(share.young), words_of(share.daly));
}

std::string text_of(const LongRun& run, double work) {
  return fmt::format(
      "a run of {} of steps takes {} on average with {:.1f} failures, {} of it useful; in 5 % of {} "
      "runs at most {}, in half {}, in 95 % {}",
      words_of(work), words_of(run.mean), run.failures, percent(run.useful), run.scenarios,
      words_of(run.p5), words_of(run.p50), words_of(run.p95));
}

// Nothing where none is asked for, or a signal came first.
std::optional<LongRun> long_run_of(const WhatIfFlags& flags, const Failures& failures,
                                   const ScenarioRequest& scenarios) {
  if (flags.run.empty()) return std::nullopt;
  LongRunRequest request;
  request.failures = failures;
  request.work = seconds_of(flags.run, "--run");
  request.scenarios = scenarios.scenarios;
  request.seed = scenarios.perturbation.seed;
  request.threads = scenarios.threads;
  request.stop = scenarios.stop;
  return long_run(request);
}

int run_whatif(const WhatIfFlags& flags) {
  CommonFlags common = flags.common;
  const std::optional<double> by = parse_quantile(flags.by, "--by");
  const std::optional<Failures> failures = failures_of(flags);
  // Items of --slow with a probability are drawn, the others hold in every scenario.
  UncertainSlow slow = split_slow(common.text("slow"), "--slow");
  common.at("slow").text = slow.always;
  ScenarioRequest scenarios = scenarios_of(flags.perturbations, usual_whatif_scenarios,
                                           failures.has_value() || !slow.sometimes.empty());
  for (Slow& item : slow.sometimes) scenarios.perturbation.slow.push_back(std::move(item));
  scenarios.threads = flags.threads;
  check_pictures(flags.svg);
  const bool silent = to_stdout(common.json, flags.svg, flags.html);
  if (scenarios.perturbation.none() && !failures) {
    throw UsageError(
        "nothing is uncertain; give --jitter 5%, --slow gpu2:1.2@0.1, --pause 100:50ms, "
        "--mtbf 8h --checkpoint 60s, or a file of them by --perturb");
  }
  SettingRequest request = request_of(common);
  request.replicas_vary = !scenarios.perturbation.none();
  Setting setting = read_setting(request);
  check_one_count(setting, "whatif", "stageline compare --jitter");
  add_notes_on_unread(common, "whatif", Shows::fit, setting);
  std::vector<ScheduleSpec> schedules = all_schedules(common);
  if (common.schedules.empty()) schedules = {one_schedule(common)};
  scenarios.stop = &catch_signals(SecondSignal::ends);
  ProgressLine line(!common.quiet);
  scenarios.progress = shown_by(line);
  const std::vector<UncertainRow> rows = under_uncertainty(request, setting, schedules, scenarios);
  line.clear();
  const auto partial = [&](const UncertainRow& row) {
    return row.steps ? row.steps->partial : scenarios.stop->load();
  };
  bool stopped = std::any_of(rows.begin(), rows.end(), partial);
  const std::vector<std::size_t> order = ranked_by_quantile(rows, by);
  if (order.empty()) throw Interrupted{"no scenario was finished, nothing was written", false};
  const std::optional<LongRun> run =
      failures ? long_run_of(flags, *failures, scenarios) : std::nullopt;
  std::vector<std::string> said = read_as_notes(common.schedules);
  for (const std::string& note : notes(setting)) said.push_back(note);
  for (const UncertainRow& row : rows) {
    if (!row.row.outcome) continue;
    for (std::string& note : setting_notes(row.row.asked, *row.row.outcome)) {
      if (std::find(said.begin(), said.end(), note) == said.end()) said.push_back(std::move(note));
    }
  }
  bool frozen = false;
  for (const UncertainRow& row : rows) {
    if (!row.steps) continue;
    const std::string note =
        other_step_note(row.row.schedule, *row.steps, row.row.outcome->step_time);
    if (!note.empty()) said.push_back(note);
    if (row.steps->engine != ScenarioEngine::frozen) continue;
    said.push_back(frozen_note(row.row.schedule, *row.steps));
    frozen = true;
  }
  if (scenarios.freeze && !frozen) said.emplace_back(nothing_frozen);
  const Case shown = rows[order.front()].row.asked;
  if (shown.sharing == Sharing::fair) {
    said.emplace_back(
        "links are shared fairly: what is critical is not looked for (--sharing fifo does)");
  }
  if (stopped) {
    said.push_back(interrupted_note(*rows[order.front()].steps, scenarios.scenarios));
  } else if (!flags.run.empty() && (!run || run->scenarios < scenarios.scenarios)) {
    stopped = true;
    said.push_back(fmt::format("interrupted: --run is played in only {} of {} scenarios",
                               run ? run->scenarios : 0, scenarios.scenarios));
  }
  if (!common.json.empty()) {
    write_file(common.json,
               uncertainty_json(setting, rows, order, said, failures ? &*failures : nullptr,
                                run ? &*run : nullptr, stopped));
  }
  if (any_picture(flags.svg)) {
    Chart chart = uncertainty_chart(rows, order, coloured_schedules);
    chart.title = "Distribution of the step · " + setting.model.name;
    chart.subtitle = fmt::format("{} scenarios", rows[order.front()].steps->step.size());
    for (const std::string& note : said) chart.footnotes.push_back("Note: " + note + ".");
    write_pictures(flags.svg, chart_svg(chart, svg_options(flags.svg)));
  }
  std::vector<std::string> advice{uncertainty_sentence(rows, order, by)};
  if (failures) advice.push_back(text_of(*failures));
  if (run) advice.push_back(text_of(*run, seconds_of(flags.run, "--run")));
  if (!flags.html.empty()) {
    write_page(flags.html, uncertainty_page(setting.model.name, rows, order,
                                            {heading(setting, shown), advice, said}));
  }
  const bool fits = std::any_of(rows.begin(), rows.end(),
                                [](const UncertainRow& row) { return row.steps && row.fits(); });
  const int answer = stopped ? exit_code_after_signal() : fits ? 0 : 1;
  if (silent) return answer;
  if (!common.quiet) {
    print_wrapped(heading(setting, shown) +
                  fmt::format("{} scenarios\n\n", rows[order.front()].steps->step.size()));
  }
  show("{}", uncertainty_table(rows, order, text_width()));
  for (const UncertainRow& row : rows) {
    if (!row.steps) {
      print_wrapped(fmt::format("{}: not possible: {}\n", row.row.schedule, row.row.why_not));
    }
  }
  for (const std::string& sentence : advice) print_wrapped(fmt::format("→ {}\n", sentence));
  if (!common.quiet) print_notes(said);
  if (!flags.html.empty() && !common.quiet) show("wrote {}\n", flags.html);
  return answer;
}

void add_whatif(Flags command) {
  const auto flags = std::make_shared<WhatIfFlags>();
  add_case_flags(command, flags->common, Many::yes);
  command.find("--schedule")
      .describe("NAME[:knob=value,…], a comma list of them, or all; repeatable; default: 1f1b");
  command.find("--devices").describe("number of devices; default: all of the cluster, or 4");
  add_degree_flags(command, flags->common);
  add_setting(command, flags->common, "messages");
  add_perturbation_flags(command, flags->perturbations, usual_whatif_scenarios);
  const Flags failures = command.in(SettingGroup::uncertainty);
  failures.common().option("--mtbf", flags->mtbf,
                           "mean time between failures of the whole run (8h), with --checkpoint");
  failures.common().option("--checkpoint", flags->checkpoint,
                           "what writing a checkpoint takes (60s)");
  failures.option("--restart", flags->restart,
                  "from a failure until work goes on (5min); default: 0");
  failures.option("--checkpoint-interval", flags->interval,
                  "work between checkpoints (30min); default: Daly's optimum");
  failures.common().option(
      "--run", flags->run,
      "so much time of steps (30d) on the machine that fails: how long it takes in all, "
      "played in every scenario");
  command.in(SettingGroup::output)
      .common()
      .option("--by", flags->by, "rank by mean or a percentile: p50, p95; default: p95");
  command.in(SettingGroup::search)
      .option("--threads", flags->threads, "default: all cores; changes no result")
      .range(1, 1024);
  add_svg_flag(command, flags->svg,
               "write the distributions of the step as an SVG file, or - for stdout");
  add_svg_style_flags(command, flags->svg);
  add_html_flag(
      command, flags->html,
      "write an interactive page with the distributions and their table, or - for stdout");
  command.footer(
      "Example:\n  stageline whatif resnet50-cpu --devices 4 --schedule 1f1b,zb_h1 --jitter 5%\n"
      "Exit code 1: none fits into memory. 130, 143: interrupted; what is known so far was printed.");
  command.runs([flags] { return run_whatif(*flags); });
}

}  // namespace

extern const Command whatif_command;
const Command whatif_command = {
    "whatif", "The distribution of the step under jitter, slow devices, pauses and failures",
    add_whatif, ""};

}  // namespace stageline
