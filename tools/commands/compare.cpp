// stageline compare: one row per schedule, synchronous ones first, with the ranking and its reason;
// for a sweep of devices also a chart of the speed-ups.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "schedulers/aliases.hpp"
#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/compare_beside.hpp"
#include "tools/commands/perturbation_flags.hpp"
#include "tools/commands/plan_hint.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/progress_line.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/typed.hpp"
#include "tools/commands/why_flags.hpp"
#include "tools/compare/advice.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/compare/rank_by.hpp"
#include "tools/compare/uncertainty.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/speedups.hpp"
#include "tools/report/text/comparison.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/waterfall.hpp"
#include "tools/study/notes.hpp"
#include "tools/study/recompute.hpp"

namespace stageline {
namespace {

constexpr int chart_columns = 80;  // of the chart as text, at most
constexpr int chart_rows = 16;
constexpr int language_width = 100;  // columns of tables of language models, if not on a terminal
constexpr std::size_t coloured = 6;  // curves of the picture; the rest is grey

struct CompareFlags {
  CommonFlags common;
  SvgFlags svg;
  int top = 10;
  bool full = false;
  std::string columns;  // as typed
  std::string within = "1%";
  int jobs = 0;
  bool no_changes = false;
  PerturbationFlags perturbations;
  std::string by;
  std::string why;
  std::vector<Flag> all_flags;
};

constexpr std::int64_t usual_scenarios = 1000;

// Reasons why rows have no outcome, each once, with the rows that share it.
struct Impossible {
  Synchrony synchrony;  // of the first row
  int devices;
  std::string why_not;
  std::string schedules;
};

std::vector<Impossible> impossible_rows(const std::vector<Row>& rows) {
  const bool with_cut = cuts_differ(rows);
  std::vector<Impossible> reasons;
  for (const Row& row : rows) {
    if (row.outcome) continue;
    const int devices = row.asked.device_count();
    const auto same = std::find_if(reasons.begin(), reasons.end(), [&](const Impossible& known) {
      return known.devices == devices && known.why_not == row.why_not;
    });
    if (same == reasons.end()) {
      reasons.push_back({block_of(row), devices, row.why_not, row_name(row, with_cut)});
    } else {
      same->schedules += ", " + row_name(row, with_cut);
    }
  }
  return reasons;
}

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
    text += fmt::format("{}{}: not possible: {}\n", reason.schedules,
                        view.sweep ? fmt::format(" on {} devices", reason.devices) : "",
                        reason.why_not);
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
  Chart chart = with_problem(speedup_chart(setting, rows), setting, rows, flags.common.link);
  highlight_best(chart, coloured);
  write_pictures(flags.svg, chart_svg(chart, svg_options(flags.svg)));
}

bool any_priced(const std::vector<Row>& rows, const TrainingBudget& budget) {
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
    return row.outcome && training_rates(row.asked, *row.outcome, budget).dollars;
  });
}

void print_notes(const CompareFlags& flags, const ComparisonView& view, const Setting& setting,
                 const std::vector<Row>& rows, const std::vector<std::string>& first) {
  std::vector<std::string> said = read_as_notes(flags.common.schedules);
  said.insert(said.end(), first.begin(), first.end());
  for (const std::string& note : notes(setting)) said.push_back(note);
  const auto say = [&](const std::string& note) {
    if (std::find(said.begin(), said.end(), note) == said.end()) said.push_back(note);
  };
  const bool recomputes = std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.outcome && recompute_fraction(*row.outcome) > 0;
  });
  if (recomputes) {
    say("recompute: the share of the devices' time that runs forwards again, which the bubble does "
        "not count");
  }
  for (const Row& row : rows) {
    if (!row.outcome) continue;
    for (const std::string& note : stream_notes(row.asked, *row.outcome)) say(note);
    if (!row.outcome->consistent()) {
      say(row.outcome->schedule + ": F≠B: backwards read other weights than their forwards");
    }
  }
  if (view.budget.tokens > 0 && !view.budget.price_per_hour && !any_priced(rows, view.budget)) {
    say("the cost of the training is unknown: give --price, or a cluster whose devices have one");
  }
  for (const Row& row : rows) {
    if (!row.outcome) continue;
    for (const std::string& note : amount_notes(row.asked, view)) say(note);
  }
  for (std::size_t i = 0; i < said.size(); ++i) {
    print_wrapped(fmt::format("{}note: {}\n", i == 0 ? "\n" : "", said[i]));
  }
}

ComparisonView view_of(const CompareFlags& flags, const Model& model) {
  ComparisonView view;
  view.width = model.tokens > 0 ? text_width_or(language_width) : text_width();
  view.budget = budget_of(flags.common, model);
  view.top = flags.full ? 0 : as_size(flags.top);
  const std::vector<std::string> all = parse_comparison_columns("all");
  if (flags.full) view.columns = all;
  if (!flags.columns.empty()) view.columns = parse_comparison_columns(flags.columns);
  view.known_only = view.columns == all;
  return view;
}

int run_compare(const CompareFlags& flags) {
  const CommonFlags& common = flags.common;
  const double within = parse_within(flags.within, "--within");
  const SettingRequest request = request_of(common);
  const Setting setting = read_setting(request);
  const bool sweep = setting.device_counts.size() > 1;
  ComparisonView view = view_of(flags, setting.model);
  view.sweep = sweep;
  check_pictures(flags.svg);
  const std::optional<CauseOrder> why = why_order(flags.why);
  if (why) check_two(all_schedules(common), setting);
  if (any_picture(flags.svg) && !sweep && !why) {
    throw UsageError(fmt::format(
        "--svg draws the speed-up against the number of devices and needs a sweep of them, but "
        "there is one number, {}; give --devices FROM..TO, such as 2..16, or, for where the time "
        "goes, two schedules and --why",
        setting.device_counts.front()));
  }
  const bool silent = to_stdout(common.json, flags.svg);
  const ScenarioRequest scenarios = scenarios_of(flags.perturbations, usual_scenarios, false);
  view.by = parse_rank_by(flags.by, "--by", !scenarios.perturbation.none());
  ProgressLine line(!common.quiet);
  const std::vector<Row> rows = compare(
      request, setting, all_schedules(common), flags.jobs, [&](std::size_t done, std::size_t all) {
        line(static_cast<std::int64_t>(done), static_cast<std::int64_t>(all));
      });
  line.clear();
  view.cuts = cuts_differ(rows);
  check_measure(view, rows);
  const RowScenarios found = under_scenarios(rows, scenarios, flags.jobs);
  if (!found.uncertain.empty()) view.uncertain = &found.uncertain;
  const std::vector<NamedWaterfall> both =
      why ? two_waterfalls(rows, *why, found.uncertain) : std::vector<NamedWaterfall>{};
  bool fits = false;
  for (const Row& row : rows) fits = fits || (row.outcome && row.outcome->fit != Fit::no);
  const int answer = found.stopped ? exit_code_after_signal() : fits ? 0 : 1;
  WaysToFit ways;
  if (!flags.no_changes && !found.stopped && !(silent && common.json.empty())) {
    ways = ways_to_fit(request, setting, rows, flags.jobs);
  }
  if (!common.json.empty()) {
    write_file(common.json, rows_json(setting, rows, view.budget, {found.uncertain, both, &ways}));
  }
  if (any_picture(flags.svg)) {
    if (why) {
      write_waterfalls(flags.svg, both, setting.model.name, notes(setting));
    } else {
      write_svg(flags, setting, rows);
    }
  }
  if (silent) return answer;

  Case first = rows.front().asked;
  first.partition = cuts_of(rows);
  first.found_cut.reset();
  if (!common.quiet) {
    print_wrapped(sweep ? sweep_heading(setting, first, rows.back().asked)
                        : heading(setting, first));
  }
  const std::vector<Measured> measured = measured_by(view.by, rows, found.uncertain, view.budget);
  const std::string alone = one_device_advice(request, setting, rows);
  if (!alone.empty()) print_wrapped(fmt::format("\n→ {}\n", alone));
  for (const Synchrony synchrony : {Synchrony::synchronous, Synchrony::asynchronous}) {
    const RankedRows order = view.by == RankBy{}
                                 ? ranked(rows, synchrony, within)
                                 : ranked_by(rows, synchrony, measured, found.uncertain);
    if (has_content(rows, order)) print_wrapped("\n" + block(rows, order, view));
  }
  if (why) {
    show("\nWhere the step's time goes\n{}", two_waterfalls_table(both[0], both[1], text_width()));
  }
  for (std::size_t i = 0; i < ways.sentences.size(); ++i) {
    print_wrapped(fmt::format("{}→ {}\n", i == 0 ? "\n" : "", ways.sentences[i]));
  }
  if (sweep) {
    Chart chart = speedup_chart(setting, rows);
    chart.title.clear();  // the heading says it
    if (std::any_of(rows.begin(), rows.end(), does_not_fit)) {
      chart.footnotes.emplace_back("Small letters: does not fit into the memory of the devices.");
    }
    show("\n{}", chart_text(chart, text_width_up_to(chart_columns), chart_rows));
  }
  if (common.quiet) {
    if (found.stopped) print_wrapped(fmt::format("\nnote: {}\n", found.interrupted));
    return answer;
  }
  std::vector<std::string> said = found.notes;
  if (why && *why == CauseOrder::shapley) said.push_back(shapley_note(both[0].waterfall));
  print_notes(flags, view, setting, rows, said);
  const std::string hint =
      plan_hint(request, setting, rows, ranked(rows, Synchrony::synchronous, within),
                typed_setting(common, flags.all_flags,
                              {"--devices", "--tp", "--cp", "--ep", "--dp", "--pp", "--order",
                               "--zero", "--precision", "--sequence-parallel"}));
  if (!hint.empty()) print_wrapped(fmt::format("hint: {}\n", hint));
  for (const OutputFile& one : picture_files(flags.svg)) {
    if (!one.file.empty()) show("wrote {}\n", one.file);
  }
  return answer;
}

void add(Flags command) {
  const auto flags = std::make_shared<CompareFlags>();
  add_case_flags(command, flags->common, Many::yes, Many::yes);
  add_degree_flags(command, flags->common);
  add_messages_flag(command, flags->common);
  add_budget_flags(command, flags->common);
  add_perturbation_flags(command, flags->perturbations, usual_scenarios);
  command.option("--by", flags->by,
                 "rank by time, energy or cost, and with --jitter and the like by mean or a "
                 "percentile; default: time, or p95");
  command.option("--within", flags->within,
                 "recommend the least memory among schedules at most this much slower than the "
                 "fastest; default: 1%");
  command
      .option("--jobs", flags->jobs,
              "rows that are simulated at a time; default: one a processor core. The answer is the "
              "same with any number")
      .range(1, 1024);
  add_why_flag(
      command, flags->why,
      "of two schedules: from the ideal step to the real one, cause by cause, side by side");
  add_svg_flag(
      command, flags->svg,
      "of a sweep: write the speed-ups by number of devices as an SVG file, or - for stdout; with "
      "--why: the waterfalls of the two schedules");
  add_svg_style_flags(command, flags->svg);
  const Flag top = command.option("--top", flags->top, "the best rows of each table; default: 10")
                       .range(1, 1 << 30);
  command.option(
      "--columns", flags->columns,
      fmt::format(
          "columns of the tables, a comma list of {}, or all; default: those that fit; on a "
          "narrow terminal these are left out, in this order: {}",
          fmt::join(comparison_columns(), ", "), fmt::join(comparison_columns_left_out(), ", ")));
  command
      .flag("--full", flags->full, "all rows of the tables, and all columns; JSON always has them")
      .excludes(top);
  command.flag("--no-changes", flags->no_changes,
               "where nothing fits into memory, search no change that would, which takes a second "
               "or two");
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
    "compare", "Compare schedules: step time, bubbles, memory, staleness, and which one wins", add,
    ""};

}  // namespace stageline
