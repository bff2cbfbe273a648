// stageline report: one page with everything: which schedule, why, and what the step hangs on.
#include <memory>

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

int run_report(const CompareFlags& flags) {
  const CommonFlags& common = flags.common;
  const bool silent = to_stdout(common.json, flags.svg, flags.html);
  const Compared found = compared(flags, compare_question(flags));
  const bool stopped = found.found.stopped;
  WaysToFit ways;
  if (!flags.no_changes && !stopped) {
    ways = ways_to_fit(found.question.request, found.question.setting, found.rows, flags.jobs);
  }
  if (!common.json.empty()) {
    write_file(common.json, rows_json(found.question.setting, found.rows, found.plain_view.budget,
                                      {found.found.uncertain, found.both, &ways}));
  }
  const std::string alone =
      one_device_advice(found.question.request, found.question.setting, found.rows);
  write_page(flags.html, compare_page(flags, found, {alone, ways, true}));
  const int answer = stopped ? exit_code_after_signal() : found.fits ? 0 : 1;
  if (silent) return answer;
  for (const RankedRows& order : found.orders) {
    if (!order.sentence.empty()) print_wrapped("→ " + order.sentence + "\n");
  }
  for (const std::string& sentence : ways.sentences) print_wrapped("→ " + sentence + "\n");
  show("wrote {}\n", flags.html);
  return answer;
}

void add(Flags command) {
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
    "report", "One page with everything: ranking, tables, diagrams, causes, sensitivities", add,
    ""};

}  // namespace stageline
