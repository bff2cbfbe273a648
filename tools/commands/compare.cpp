// stageline compare: one row per schedule, synchronous ones first, with the ranking and its reason;
// for a sweep of devices also a chart of the speed-ups.
#include <fmt/format.h>

#include <memory>

#include "tools/base/text.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/compare_flags.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/plan_hint.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/typed.hpp"
#include "tools/commands/watched.hpp"
#include "tools/commands/why_flags.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/report/speedups.hpp"
#include "tools/report/text/compared.hpp"
#include "tools/report/text/waterfall.hpp"

namespace stageline::cli {
namespace {

constexpr int chart_columns = 80;    // of the chart as text, at most
constexpr std::size_t coloured = 6;  // curves of the picture; the rest is grey

std::string compared_svg(const CompareFlags& flags, const answers::Comparison& found,
                         const report::SvgOptions& options) {
  if (!found.both.empty()) {
    return report::waterfalls_svg(found.both, found.setting.model.name, notes(found.setting),
                                  options);
  }
  if (!found.sweep()) {
    return report::chart_svg(
        report::with_problem(report::step_chart(found.setting, found.rows), found.setting,
                             found.rows, flags.common.text("link")),
        options);
  }
  report::Chart chart = report::with_problem(report::speedup_chart(found.setting, found.rows),
                                             found.setting, found.rows, flags.common.text("link"));
  report::highlight_best(chart, coloured);
  report::add_ideal(chart);
  return report::chart_svg(chart, options);
}

std::string text_of(const CompareFlags& flags, const answers::Comparison& found) {
  const bool quiet = flags.common.quiet;
  std::string text = report::compared_text(found, view_of(flags, found),
                                           {quiet, text_width(), text_width_up_to(chart_columns)});
  if (quiet && found.stopped) {
    text += wrapped(fmt::format("\nnote: {}\n", found.interrupted), text_width());
  }
  return text;
}

// What plan would try beside; empty: little is to be gained.
std::string hint_of(const CompareFlags& flags, const answers::ComparisonQuestion& question,
                    const answers::Comparison& found) {
  return plan_hint(
      question.setting, found.setting, found.rows,
      question.by == RankBy{} ? found.orders.front() : ranked(found.rows, Synchrony::synchronous),
      typed_setting(flags.common, flags.all_flags, {SettingOf::ranks}, {"devices"}));
}

int run_compare(const CompareFlags& flags) {
  const CommonFlags& common = flags.common;
  const Outputs outputs{common.json, flags.svg, flags.html, common.quiet};
  check_outputs(outputs);
  const bool silent = is_silent(outputs);
  answers::ComparisonQuestion question = comparison_question(flags, nullptr);
  const bool written = !common.json.empty() || !flags.html.empty();
  question.changes = question.changes && (written || !silent);
  question.alone = !silent || !flags.html.empty();
  if (!flags.html.empty()) question.redrawn = answers::Redrawn::best;
  const answers::Comparison found = answer_watched(question, common.quiet);
  Forms forms;
  forms.json = [&] { return comparison_json(found); };
  forms.svg = [&](const report::SvgOptions& options) {
    return compared_svg(flags, found, options);
  };
  forms.page = [&] { return comparison_page(flags, found); };
  forms.text = [&] { return text_of(flags, found); };
  forms.notes = [&] { return notes_of(flags, found); };
  if (!silent && !common.quiet) forms.hint = hint_of(flags, question, found);
  forms.wrote = {"--svg", "--pdf", "--png", "--html"};
  deliver(outputs, forms);
  return found.stopped ? exit_code_after_signal() : found.fits ? 0 : 1;
}

void add_compare(Flags command) {
  const auto flags = std::make_shared<CompareFlags>();
  add_compare_flags(command, *flags);
  add_why_flag(
      command, flags->why,
      "of two schedules: from the ideal step to the real one, cause by cause, side by side");
  add_svg_flag(
      command, flags->svg,
      "write the steps of the schedules with their ranges as an SVG file, or - for stdout; of a sweep "
      "the speed-ups by number of devices; with --why the waterfalls of the two schedules");
  add_svg_style_flags(command, flags->svg);
  add_html_flag(command, flags->html,
                "write an interactive page with ranking, memory against time, table and diagrams: "
                "one file that opens from disk; or - for stdout");
  const Flags output = command.in(SettingGroup::output);
  const Flag top = output.option("--top", flags->top, "the best rows of each table; default: 10")
                       .range(1, 1 << 30);
  add_compare_table_flags(command, *flags);
  output.common()
      .flag("--full", flags->full, "all rows of the tables, and all columns; JSON always has them")
      .excludes(top);
  command.footer(
      "Example:\n  stageline compare model:resnet50@h100,batch=32 --devices 8 --microbatches 64\n"
      "ranks all schedules on 8 H100s. Exit code 1: none fits into memory.\n"
      "  stageline compare resnet50-cpu --schedule pipedream,gpipe --devices 2..16 --svg "
      "sweep.svg\n"
      "ranks two on 2 to 16 devices and draws their speed-ups.\n"
      "  stageline compare resnet50-cpu --devices 4 --jitter 5% --by p99\n"
      "ranks by the step that 99 % of all steps stay below.\n"
      "  stageline compare resnet50-cpu --devices 4 --schedule 1f1b,zb_h1 --why\n"
      "says where the difference between two comes from.");
  flags->all_flags = command.all();
  command.runs([flags] { return run_compare(*flags); });
}

}  // namespace

extern const Command compare_command;
const Command compare_command = {
    "compare", "Compare schedules: step time, bubbles, memory, staleness, and which one wins",
    add_compare, ""};

}  // namespace stageline::cli
