// stageline compare: one row per schedule, synchronous ones first, with the ranking and its reason;
// for a sweep of devices also a chart of the speed-ups.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/compare_page.hpp"
#include "tools/commands/compared.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/plan_hint.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/why_flags.hpp"
#include "tools/compare/advice.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/speedups.hpp"
#include "tools/report/text/comparison.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/waterfall.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline {
namespace {

constexpr int chart_columns = 80;  // of the chart as text, at most
constexpr int chart_rows = 16;
constexpr std::size_t coloured = 6;  // curves of the picture; the rest is grey

// One block of the comparison: its table, the rows that are not possible, the recommendation.
std::string block(const std::vector<Row>& rows, const RankedRows& order,
                  const ComparisonView& view) {
  std::string text =
      order.synchrony == Synchrony::synchronous
          ? "Synchronous (one update a step, as plain training)\n"
          : "Asynchronous (updates on stale weights; a step is as many mini-batches)\n";
  text += comparison_table(rows, order, view);
  for (const Impossible& reason : impossible_rows(rows)) {
    if (reason.synchrony != order.synchrony) continue;
    text += reason.sentence(view.sweep) + "\n";
  }
  if (!order.sentence.empty()) text += "→ " + order.sentence + "\n";
  return text;
}

// Whether a block has anything to show: rows, or reasons that no other block has shown.
bool has_content(const std::vector<Row>& rows, const RankedRows& order) {
  const std::vector<Impossible> reasons = impossible_rows(rows);
  return !order.rows.empty() ||
         std::any_of(reasons.begin(), reasons.end(),
                     [&](const Impossible& reason) { return reason.synchrony == order.synchrony; });
}

bool does_not_fit(const Row& row) { return row.outcome && row.outcome->fit == Fit::no; }

void write_svg(const CompareFlags& flags, const Setting& setting, const std::vector<Row>& rows) {
  Chart chart =
      with_problem(speedup_chart(setting, rows), setting, rows, flags.common.text("link"));
  highlight_best(chart, coloured);
  write_pictures(flags.svg, chart_svg(chart, svg_options(flags.svg)));
}

void check_svg(const CompareFlags& flags, const CompareQuestion& question) {
  check_pictures(flags.svg);
  if (!any_picture(flags.svg) || question.sweep() || question.why) return;
  throw UsageError(fmt::format(
      "--svg draws the speed-up against the number of devices and needs a sweep of them, but "
      "there is one number, {}; give --devices FROM..TO, such as 2..16, or, for where the time "
      "goes, two schedules and --why",
      question.setting.device_counts.front()));
}

// Heading, blocks with their advice, and the chart of a sweep.
void print_answer(const CompareFlags& flags, const Compared& found, const WaysToFit& ways,
                  const std::string& alone) {
  const Setting& setting = found.question.setting;
  const std::vector<Row>& rows = found.rows;
  const bool sweep = found.question.sweep();
  if (!flags.common.quiet) print_wrapped(compare_heading(found));
  if (!alone.empty()) print_wrapped(fmt::format("\n→ {}\n", alone));
  for (const RankedRows& order : found.orders) {
    if (has_content(rows, order)) print_wrapped("\n" + block(rows, order, found.view()));
  }
  if (!found.both.empty()) {
    show("\nWhere the step's time goes\n{}",
         two_waterfalls_table(found.both[0], found.both[1], text_width()));
  }
  for (std::size_t i = 0; i < ways.sentences.size(); ++i) {
    print_wrapped(fmt::format("{}→ {}\n", i == 0 ? "\n" : "", ways.sentences[i]));
  }
  if (!sweep) return;
  Chart chart = speedup_chart(setting, rows);
  chart.title.clear();  // the heading says it
  if (std::any_of(rows.begin(), rows.end(), does_not_fit)) {
    chart.footnotes.emplace_back("Small letters: does not fit into the memory of the devices.");
  }
  show("\n{}", chart_text(chart, text_width_up_to(chart_columns), chart_rows));
}

int run_compare(const CompareFlags& flags) {
  const CommonFlags& common = flags.common;
  CompareQuestion question = compare_question(flags);
  check_svg(flags, question);
  const bool silent = to_stdout(common.json, flags.svg, flags.html);
  Compared found = compared(flags, std::move(question));
  const SettingRequest& request = found.question.request;
  const Setting& setting = found.question.setting;
  const std::vector<Row>& rows = found.rows;
  const bool written = !common.json.empty() || !flags.html.empty();
  const WaysToFit ways = silent && !written ? WaysToFit{} : ways_so_far(flags, found);
  const bool stopped = found.found.stopped;
  const int answer = stopped ? exit_code_after_signal() : found.fits ? 0 : 1;
  if (!common.json.empty()) {
    write_file(common.json, rows_json(setting, rows, {found.found.uncertain, found.both, &ways}));
  }
  if (any_picture(flags.svg)) {
    if (!found.both.empty()) {
      write_waterfalls(flags.svg, found.both, setting.model.name, notes(setting));
    } else {
      write_svg(flags, setting, rows);
    }
  }
  const std::string alone =
      silent && flags.html.empty() ? "" : one_device_advice(request, setting, rows);
  if (!flags.html.empty()) {
    write_page(flags.html, compare_page(flags, found, {alone, ways, false}));
  }
  if (silent) return answer;
  print_answer(flags, found, ways, alone);
  if (common.quiet) {
    if (stopped) print_wrapped(fmt::format("\nnote: {}\n", found.found.interrupted));
    return answer;
  }
  const std::vector<std::string> said = compare_notes(flags, found);
  print_notes(said);
  const std::string hint =
      plan_hint(request, setting, rows, ranked(rows, Synchrony::synchronous, found.question.within),
                typed_question(flags));
  if (!hint.empty()) print_wrapped(fmt::format("hint: {}\n", hint));
  std::vector<OutputFile> files = picture_files(flags.svg);
  files.push_back({"--html", flags.html});
  for (const OutputFile& one : files) {
    if (!one.file.empty()) show("wrote {}\n", one.file);
  }
  return answer;
}

void add_compare(Flags command) {
  const auto flags = std::make_shared<CompareFlags>();
  add_compare_flags(command, *flags);
  add_why_flag(
      command, flags->why,
      "of two schedules: from the ideal step to the real one, cause by cause, side by side");
  add_svg_flag(
      command, flags->svg,
      "of a sweep: write the speed-ups by number of devices as an SVG file, or - for stdout; with "
      "--why: the waterfalls of the two schedules");
  add_svg_style_flags(command, flags->svg);
  add_html_flag(command, flags->html,
                "write an interactive page with ranking, memory against time, table and diagrams: "
                "one file that opens from disk; or - for stdout");
  const Flag top = command.option("--top", flags->top, "the best rows of each table; default: 10")
                       .range(1, 1 << 30);
  add_compare_table_flags(command, *flags);
  command
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

}  // namespace stageline
