// stageline simulate: everything about one schedule.
#include <fmt/core.h>

#include <memory>
#include <optional>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "tools/answers/simulated.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/perturbation_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/why_flags.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/page/outcome_page.hpp"
#include "tools/report/text/simulation.hpp"
#include "tools/report/text/waterfall.hpp"

namespace stageline::cli {
namespace {

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
  if (flags.why == why_from_peak && any_picture(flags.svg)) {
    throw UsageError(
        "simulate draws the step from all work spread evenly on, and --why=peak is a table and "
        "JSON; --why --svg draws it");
  }
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

answers::SimulationQuestion question_of(const SimulateFlags& flags) {
  answers::SimulationQuestion question;
  question.scenarios = scenarios_of(flags.perturbations, usual_jitter_scenarios, false);
  question.from_peak = flags.why == why_from_peak;
  question.why = question.from_peak ? CauseOrder::fixed : why_order(flags.why);
  check_needs_why(flags, question.why.has_value(), !question.scenarios.perturbation.none());
  question.setting = request_of_one(flags.common);
  question.setting.replicas_vary = !question.scenarios.perturbation.none();
  question.curves = flags.html.empty() ? Curves::none : Curves::all;
  question.changes = !flags.no_changes;
  question.check = [&flags](const Setting& setting) {
    check_one_count(setting, "simulate");
    budget_of(flags.common, setting.model);
  };
  return question;
}

int run_simulate(const SimulateFlags& flags) {
  const CommonFlags& common = flags.common;
  const Outputs outputs{common.json, flags.svg, flags.html, common.quiet};
  check_outputs(outputs);
  const answers::Simulation found = answer(question_of(flags));
  const Outcome& outcome = found.outcome;
  const TrainingBudget budget = typed_budget(common);
  Forms forms;
  forms.json = [&] {
    return report::outcome_json(found.setting, found.asked, outcome, flags.timeline, nullptr,
                                budget, found.waterfall ? &*found.waterfall : nullptr,
                                flags.no_changes ? nullptr : &found.ways, found.from_peak);
  };
  forms.svg = [&](const report::SvgOptions& options) {
    return report::waterfalls_svg({{outcome.schedule, *found.waterfall}}, found.setting.model.name,
                                  notes(found.setting), options, flags.full);
  };
  forms.page = [&] { return report::simulation_page(found); };
  forms.text = [&] {
    return report::simulation_text(
        found, {text_width(), figure_columns(), flags.full, common.quiet, colour_wanted(), budget});
  };
  forms.notes = [&] {
    return report::simulation_notes(found, budget, read_as_notes(common.schedules));
  };
  deliver(outputs, forms);
  return outcome.fit == Fit::no ? 1 : 0;
}

void add_simulate(Flags command) {
  const auto flags = std::make_shared<SimulateFlags>();
  add_case_flags(command, flags->common);
  add_degree_flags(command, flags->common);
  add_setting(command, flags->common, "messages");
  add_budget_flags(command, flags->common);
  const Flags output = command.in(SettingGroup::output);
  command.in(SettingGroup::search)
      .flag("--no-changes", flags->no_changes,
            "where nothing fits into memory, search no change that would, which takes a second "
            "or two");
  output.flag("--timeline", flags->timeline, "with --json: include every span")
      .needs(command.find("--json"));
  output.common().flag(
      "--full", flags->full,
      "all devices and stages, and the peak of memory of each device; default: of more "
      "than 24, the ends and the extremes, and equal neighbours as one");
  add_why_flag(command, flags->why,
               "from all work spread evenly to the real step, cause by cause: imbalance, fill and "
               "drain, dependency, messages, collectives, optimizer, copies, memory limit; with "
               "--full by device, with --jitter and the like of the mean step; --why=peak: from "
               "100 % of the devices' peak, by kind of kernel, too");
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

}  // namespace stageline::cli
