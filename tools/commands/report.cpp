// stageline report: one page with everything: which schedule, why, and what the step hangs on.
#include <fmt/core.h>

#include <memory>
#include <string>

#include "tools/base/files.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/compare_page.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/why_flags.hpp"
#include "tools/report/json/outcome.hpp"

namespace stageline {
namespace {

std::string said_of_stop(const Compared& found) {
  return found.found.stopped ? found.found.interrupted
                             : "interrupted: the page says only in part what the step hangs on";
}

int run_report(const CompareFlags& flags) {
  const CommonFlags& common = flags.common;
  const bool silent = to_stdout(common.json, flags.svg, flags.html);
  Compared found = compared(flags, compare_question(flags));
  const WaysToFit ways = ways_so_far(flags, found);
  if (!common.json.empty()) {
    write_file(common.json, rows_json(found.question.setting, found.rows,
                                      {found.found.uncertain, found.both, &ways}));
  }
  const std::string alone =
      one_device_advice(found.question.request, found.question.setting, found.rows);
  write_page(flags.html, compare_page(flags, found, {alone, ways, true}));
  // Also by a signal that came while the page was made, which then lacks sensitivities.
  const bool stopped = found.found.stopped || catch_signals(SecondSignal::ends);
  const int answer = stopped ? exit_code_after_signal() : found.fits ? 0 : 1;
  if (silent) return answer;
  for (const RankedRows& order : found.orders) {
    if (!order.sentence.empty()) print_wrapped("→ " + order.sentence + "\n");
  }
  for (const std::string& sentence : ways.sentences) print_wrapped("→ " + sentence + "\n");
  if (stopped) print_wrapped(fmt::format("note: {}\n", said_of_stop(found)));
  show("wrote {}\n", flags.html);
  return answer;
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

}  // namespace stageline
