// stageline compare: one row per schedule, synchronous ones first, with the ranking and its reason;
// for a sweep of devices also a chart of the speed-ups.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "tools/base/files.hpp"
#include "tools/base/provenance.hpp"
#include "tools/base/table.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/study/notes.hpp"

namespace stageline {
namespace {

constexpr int chart_columns = 80;  // of the chart as text
constexpr int chart_rows = 16;
constexpr std::size_t coloured = 6;  // curves of the picture; the rest is grey

struct CompareFlags {
  CommonFlags common;
  SvgFlags svg;
};

std::string fit_text(const Outcome& outcome) {
  switch (outcome.fit) {
    case Fit::yes:
      return "yes";
    case Fit::no:
      return "NO";
    case Fit::unknown:
      return "unknown";
  }
  return "";
}

std::string staleness_text(const Outcome& outcome) {
  return fmt::format("{:g}{}", outcome.staleness_max(), outcome.consistent() ? "" : " F≠B");
}

std::string block(const std::vector<Row>& rows, Synchrony synchrony, bool sweep) {
  std::string text =
      synchrony == Synchrony::synchronous
          ? "Synchronous (one update a step, as plain training)\n"
          : "Asynchronous (updates on stale weights; a step is as many mini-batches)\n";
  std::vector<Column> columns{{"schedule", true}};
  if (sweep) columns.push_back({"devices"});
  for (const char* const title :
       {"step", "throughput", "speed-up", "bubble", "exposed comm", "peak memory"}) {
    columns.push_back({title});
  }
  columns.push_back({"on", true});
  columns.push_back({"versions"});
  columns.push_back({"staleness"});
  columns.push_back({"fits", true});
  const RankedRows order = ranked(rows, synchrony);
  std::vector<std::vector<std::string>> cells;
  for (const std::size_t i : order.rows) {
    const Outcome& outcome = *rows[i].outcome;
    const auto device = as_size(outcome.peak_device());
    std::vector<std::string> row{outcome.schedule};
    if (sweep) row.push_back(fmt::format("{}", outcome.devices));
    row.push_back(print(outcome.step_time));
    const bool takes_time = outcome.step_time > Time{};
    row.push_back(takes_time ? fmt::format("{:.5g} {}", outcome.throughput, outcome.throughput_unit)
                             : "–");
    row.push_back(takes_time ? fmt::format("{:.2f}×", outcome.speedup) : "–");
    row.push_back(percent(outcome.bubble_fraction));
    row.push_back(percent(outcome.exposed_communication));
    row.push_back(bytes_text(outcome.memory.device[device].peak, outcome.bytes_known()));
    row.push_back(outcome.bytes_known() ? outcome.program.devices[device] : "–");
    row.push_back(fmt::format("{}", outcome.versions_peak()));
    row.push_back(staleness_text(outcome));
    row.push_back(fit_text(outcome));
    cells.push_back(std::move(row));
  }
  if (!cells.empty()) text += table(columns, cells);
  for (const Row& row : rows) {
    if (row.outcome || block_of(row) != synchrony) continue;
    text += fmt::format(
        "{}{}: not possible: {}\n", row.schedule,
        sweep ? fmt::format(" on {} devices", row.asked.cluster.devices.size()) : "", row.why_not);
  }
  if (!order.sentence.empty()) text += "→ " + order.sentence + "\n";
  return text;
}

// One series per schedule, in the order of the command line. Infeasible points are gaps; points
// that do not fit into memory are hollow.
Chart speedup_chart(const Setting& setting, const std::vector<Row>& rows) {
  Chart chart;
  chart.title = "Speed-up over one device · " + setting.model.name;
  chart.x.label = "devices";
  chart.x.whole = true;
  chart.y.label = "speed-up over one device";
  chart.y.unit = "×";
  chart.horizontal = {{1, "one device"}};
  for (const Row& row : rows) {
    auto series = std::find_if(chart.series.begin(), chart.series.end(),
                               [&](const Series& known) { return known.name == row.schedule; });
    if (series == chart.series.end()) {
      chart.series.push_back({row.schedule, SeriesStyle::line, {}});
      series = chart.series.end() - 1;
    }
    ChartPoint point{static_cast<double>(row.asked.cluster.devices.size()), std::nullopt, false};
    if (row.outcome) {
      point.y = row.outcome->speedup;
      point.open = row.outcome->fit == Fit::no;
    }
    series->points.push_back(point);
  }
  return chart;
}

bool does_not_fit(const Row& row) { return row.outcome && row.outcome->fit == Fit::no; }

// Adds what a reader of the picture alone must know: problem, costs, cluster, notes.
Chart with_provenance(Chart chart, const Setting& setting, const std::vector<Row>& rows,
                      const std::string& link) {
  // The default of 4 micro-batches per device differs from row to row.
  const auto [least, most] = std::minmax_element(
      rows.begin(), rows.end(),
      [](const Row& a, const Row& b) { return a.asked.microbatches < b.asked.microbatches; });
  const int low = least->asked.microbatches;
  const int high = most->asked.microbatches;
  const Model& model = setting.model;
  const std::string count =
      low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
  chart.subtitle =
      fmt::format("{} layers · {} micro-batches{} a step · cut: {}", model.layers.size(), count,
                  of_samples(model.batch, model.sample), rows.front().asked.partition);
  if (std::any_of(rows.begin(), rows.end(), does_not_fit)) {
    chart.footnotes.emplace_back("Hollow markers: does not fit into the memory of the devices.");
  }
  if (low < high) {
    chart.footnotes.push_back("Micro-batches a step grow with the devices, four to each.");
  }
  chart.footnotes.push_back(
      fmt::format("Costs of {}: {}.", model.name, described(model.provenance)));
  const ClusterChoice& cluster = setting.cluster;
  if (cluster.fixed) {
    chart.footnotes.push_back(
        fmt::format("Cluster: the first devices of {}.", cluster.fixed->name));
  } else if (!link.empty()) {
    chart.footnotes.push_back(fmt::format("Cluster: equal devices with ports of {}.", link));
  }
  for (const std::string& note : notes(setting)) {
    chart.footnotes.push_back("Note: " + note + (!note.empty() && note.back() == '.' ? "" : "."));
  }
  return chart;
}

void write_svg(const CompareFlags& flags, const Setting& setting, const std::vector<Row>& rows) {
  Chart chart = with_provenance(speedup_chart(setting, rows), setting, rows, flags.common.link);
  highlight_best(chart, coloured);
  write_pictures(flags.svg, chart_svg(chart, svg_options(flags.svg)));
}

void print_notes(const Setting& setting, const std::vector<Row>& rows) {
  std::vector<std::string> said = notes(setting);
  const auto say = [&](const std::string& note) {
    if (std::find(said.begin(), said.end(), note) == said.end()) said.push_back(note);
  };
  for (const Row& row : rows) {
    if (!row.outcome) continue;
    for (const std::string& note : stream_notes(row.asked, *row.outcome)) say(note);
    if (!row.outcome->consistent()) {
      say(row.outcome->schedule + ": F≠B: backwards read other weights than their forwards");
    }
  }
  for (std::size_t i = 0; i < said.size(); ++i) {
    fmt::print("{}note: {}\n", i == 0 ? "\n" : "", said[i]);
  }
}

int run_compare(const CompareFlags& flags) {
  const CommonFlags& common = flags.common;
  const SettingRequest request = request_of(common);
  const Setting setting = read_setting(request);
  const bool sweep = setting.device_counts.size() > 1;
  check_pictures(flags.svg);
  if (any_picture(flags.svg) && !sweep) {
    throw UsageError(fmt::format(
        "--svg draws the speed-up against the number of devices and needs a sweep of them, but "
        "there is one number, {}; give --devices FROM..TO, such as 2..16",
        setting.device_counts.front()));
  }
  const bool silent = to_stdout(common.json, flags.svg);
  const std::vector<Row> rows = compare(request, setting, all_schedules(common));
  bool fits = false;
  for (const Row& row : rows) fits = fits || (row.outcome && row.outcome->fit != Fit::no);
  const int answer = fits ? 0 : 1;
  if (!common.json.empty()) write_file(common.json, rows_json(setting, rows));
  if (any_picture(flags.svg)) write_svg(flags, setting, rows);
  if (silent) return answer;

  bool any[2] = {false, false};
  for (const Row& row : rows) nth(any, block_of(row)) = true;
  if (!common.quiet) fmt::print("{}", heading(setting, rows.front().asked, sweep));
  for (const Synchrony synchrony : {Synchrony::synchronous, Synchrony::asynchronous}) {
    if (!nth(any, synchrony)) continue;
    fmt::print("\n{}", block(rows, synchrony, sweep));
  }
  if (sweep) {
    Chart chart = speedup_chart(setting, rows);
    chart.title.clear();  // the heading says it
    if (std::any_of(rows.begin(), rows.end(), does_not_fit)) {
      chart.footnotes.emplace_back("Small letters: does not fit into the memory of the devices.");
    }
    fmt::print("\n{}", chart_text(chart, chart_columns, chart_rows));
  }
  if (common.quiet) return answer;
  print_notes(setting, rows);
  for (const OutputFile& one : picture_files(flags.svg)) {
    if (!one.file.empty()) fmt::print("wrote {}\n", one.file);
  }
  return answer;
}

void add(Flags command) {
  const auto flags = std::make_shared<CompareFlags>();
  add_case_flags(command, flags->common, Many::yes);
  add_messages_flag(command, flags->common);
  add_svg_flag(
      command, flags->svg,
      "of a sweep: write the speed-ups by number of devices as an SVG file, or - for stdout");
  add_svg_style_flags(command, flags->svg);
  command.footer(
      "Example:\n  stageline compare model:resnet50@h100,batch=32 --devices 8 --microbatches 64\n"
      "ranks all schedules on 8 H100s. Exit code 1: none fits into memory.\n"
      "  stageline compare resnet50-cpu --schedule pipedream,gpipe --devices 2..16 --svg "
      "sweep.svg\n"
      "ranks two on 2 to 16 devices and draws their speed-ups.");
  command.runs([flags] { return run_compare(*flags); });
}

}  // namespace

extern const Command compare_command;
const Command compare_command = {
    "compare", "Compare schedules: step time, bubbles, memory, staleness, and which one wins", add,
    ""};

}  // namespace stageline
