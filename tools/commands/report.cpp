// stageline report: one page with everything: which schedule, why, and what the step hangs on.
#include <fmt/core.h>

#include <memory>
#include <string>

#include "tools/base/text.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/compare_flags.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/watched.hpp"
#include "tools/commands/why_flags.hpp"

namespace stageline::cli {
namespace {

std::string sentences_of(const answers::Comparison& found, bool stopped) {
  std::string text;
  for (const RankedRows& order : found.orders) {
    if (!order.sentence.empty()) text += "→ " + order.sentence + "\n";
  }
  for (const std::string& sentence : found.ways.sentences) text += "→ " + sentence + "\n";
  if (stopped) {
    text += fmt::format("note: {}\n",
                        found.stopped
                            ? found.interrupted
                            : "interrupted: the page says only in part what the step hangs on");
  }
  return wrapped(text, text_width());
}

int run_report(const CompareFlags& flags) {
  const CommonFlags& common = flags.common;
  const Outputs outputs{common.json, flags.svg, flags.html};
  check_outputs(outputs);
  answers::ComparisonQuestion question = comparison_question(flags, nullptr);
  question.alone = true;
  question.redrawn = answers::Redrawn::explained;
  const answers::Comparison found = answer_watched(question, common.quiet);
  Forms forms;
  forms.json = [&] { return comparison_json(found); };
  forms.page = [&] { return comparison_page(flags, found); };
  // Also by a signal that came while the page was made, which then lacks sensitivities.
  const auto stopped = [&] { return found.stopped || catch_signals(SecondSignal::ends); };
  forms.text = [&] { return sentences_of(found, stopped()); };
  forms.wrote = {"--html"};
  deliver(outputs, forms);
  return stopped() ? exit_code_after_signal() : found.fits ? 0 : 1;
}

void add_report(Flags command) {
  const auto flags = std::make_shared<CompareFlags>();
  flags->html = "stageline-report.html";
  add_compare_flags(command, *flags);
  add_why_flag(
      command, flags->why,
      "of two schedules: draw these two, and where the difference between them comes from; "
      "default: the recommended one and the runner-up");
  add_html_flag(command, flags->html, "the page, or - for stdout").default_shown();
  add_compare_table_flags(command, *flags);
  command.footer(
      "Example:\n  stageline report resnet50-cpu --devices 4 --link 2.5GB/s --memory 4GB\n"
      "compares all schedules, and writes one file that opens from disk, with nothing to fetch: "
      "the ranking,\nmemory against time, the table, diagrams of the recommended schedule and the "
      "runner-up, where their\ntime goes, and what the step hangs on. Exit code 1: none fits into "
      "memory.");
  flags->all_flags = command.all();
  command.runs([flags] { return run_report(*flags); });
}

}  // namespace

extern const Command report_command;
const Command report_command = {
    "report", "One page with everything: ranking, tables, diagrams, causes, sensitivities",
    add_report, ""};

}  // namespace stageline::cli
