// stageline whatif: the distribution of the step under jitter, slow devices and pauses, and which
// schedule is the best how often.
#include <fmt/core.h>

#include <memory>
#include <utility>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "tools/answers/uncertain.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/perturbation_flags.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/typed.hpp"
#include "tools/commands/watched.hpp"
#include "tools/inputs/device_rates.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/page/study_pages.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/what_if.hpp"

namespace stageline::cli {
namespace {

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

answers::WhatIfQuestion question_of(const WhatIfFlags& flags) {
  CommonFlags common = flags.common;
  answers::WhatIfQuestion question;
  question.by = parse_quantile(flags.by, "--by");
  question.failures = failures_of(flags);
  if (question.failures && !flags.run.empty()) question.run = seconds_of(flags.run, "--run");
  // Items of --slow with a probability are drawn, the others hold in every scenario.
  UncertainSlow slow = split_slow(common.text("slow"), "--slow");
  common.at("slow").text = slow.always;
  ScenarioRequest& scenarios = question.scenarios;
  scenarios = scenarios_of(flags.perturbations, usual_whatif_scenarios,
                           question.failures.has_value() || !slow.sometimes.empty());
  for (Slow& item : slow.sometimes) scenarios.perturbation.slow.push_back(std::move(item));
  scenarios.threads = flags.threads;
  if (scenarios.perturbation.none() && !question.failures) {
    throw UsageError(
        "nothing is uncertain; give --jitter 5%, --slow gpu2:1.2@0.1, --pause 100:50ms, "
        "--mtbf 8h --checkpoint 60s, or a file of them by --perturb");
  }
  question.setting = request_of(common);
  question.setting.replicas_vary = !scenarios.perturbation.none();
  question.check = [](const Setting& setting) {
    check_one_count(setting, "whatif", "stageline compare --jitter");
  };
  question.notes = notes_on_unread(common, "whatif", Shows::fit);
  return question;
}

std::vector<std::string> notes_of(const WhatIfFlags& flags, const answers::WhatIfAnswer& found) {
  std::vector<std::string> said = read_as_notes(flags.common.schedules);
  for (const std::string& note : notes(found.setting)) said.push_back(note);
  said.insert(said.end(), found.notes.begin(), found.notes.end());
  return said;
}

int run_whatif(const WhatIfFlags& flags) {
  const CommonFlags& common = flags.common;
  const Outputs outputs{common.json, flags.svg, flags.html, common.quiet};
  check_outputs(outputs);
  const answers::WhatIfQuestion question = question_of(flags);
  const answers::WhatIfAnswer found = answer_watched(question, common.quiet);
  std::vector<std::string> said = notes_of(flags, found);
  const std::vector<std::string> advice = report::what_if_advice(question, found);
  Forms forms;
  forms.json = [&] {
    return report::uncertainty_json(found.setting, found.rows, found.order, said,
                                    question.failures ? &*question.failures : nullptr,
                                    found.run ? &*found.run : nullptr, found.stopped);
  };
  forms.svg = [&](const report::SvgOptions& options) {
    return report::what_if_svg(found, said, options);
  };
  forms.page = [&] {
    return report::uncertainty_page(
        found.setting.model.name, found.rows, found.order,
        {report::heading(found.setting, found.best().row.asked), advice, said});
  };
  forms.text = [&] { return report::what_if_text(found, advice, text_width(), common.quiet); };
  forms.notes = [&] { return said; };
  forms.wrote = {"--html"};
  deliver(outputs, forms);
  return found.stopped ? exit_code_after_signal() : found.fits() ? 0 : 1;
}

void add_whatif(Flags command) {
  const auto flags = std::make_shared<WhatIfFlags>();
  add_case_flags(command, flags->common, Many::yes);
  command.find("--schedule")
      .describe(
          "NAME[:knob=value,…] or FILE.slp, a comma list of them, or all; repeatable; default: 1f1b");
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

}  // namespace stageline::cli
