// stageline published: published measurements of training runs, predicted and compared.
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/traces.hpp"
#include "tools/published/evidence.hpp"
#include "tools/published/report.hpp"
#include "tools/published/vtrain.hpp"

namespace stageline::cli {
namespace {

struct PublishedFlags {
  std::vector<std::string> points;
  std::string source;
  std::string calibration;
  std::string markdown;
  std::string json;
  std::string evidence;
  std::string validation;
  SvgFlags svg;
  bool rows = false;
};

std::string lower_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

// The rows whose source has the word in it.
std::vector<Point> of_source(std::vector<Point> points, const std::string& word) {
  if (word.empty()) return points;
  const std::string sought = lower_letters(word);
  std::vector<std::string> sources;
  std::vector<Point> kept;
  for (Point& point : points) {
    if (std::find(sources.begin(), sources.end(), point.source) == sources.end()) {
      sources.push_back(point.source);
    }
    if (lower_letters(point.source).find(sought) != std::string::npos) {
      kept.push_back(std::move(point));
    }
  }
  if (kept.empty()) {
    std::string list;
    for (const std::string& source : sources) list += (list.empty() ? "" : ", ") + source;
    throw UsageError(
        fmt::format("--source {}: no row's source has that word; the sources are {}", word, list));
  }
  return kept;
}

// vTrain's simulated file, which has no measurements, answered alone.
bool answers_simulated(const PublishedFlags& flags) {
  for (const std::string& file : flags.points) {
    const std::string csv = read_text(file);
    if (!is_vtrain_simulated(csv)) continue;
    const bool writes = !flags.json.empty() || !flags.markdown.empty() || any_picture(flags.svg) ||
                        !flags.evidence.empty() || !flags.validation.empty();
    if (writes || flags.rows || flags.points.size() > 1) {
      throw UsageError(
          "vTrain's single-node file has no measurements, and is answered with two sentences; "
          "leave out --rows, --json, --markdown, --evidence-out, --validation-out, pictures and "
          "other files");
    }
    print_wrapped(composition_text(compose_vtrain(csv, file)));
    return true;
  }
  return false;
}

PointsFile read_files(const std::vector<std::string>& files) {
  PointsFile all;
  for (const std::string& file : files) {
    const std::string csv = read_text(file);
    PointsFile read = is_vtrain(csv) ? read_vtrain_file(csv, file) : read_points_file(csv, file);
    for (Point& point : read.points) all.points.push_back(std::move(point));
    for (UnreadRow& row : read.unread) all.unread.push_back(std::move(row));
  }
  return all;
}

// The table of evidence, and the page about it.
void write_evidence(const PublishedFlags& flags, const std::vector<Point>& points,
                    const JudgeRequest& request) {
  if (flags.evidence.empty() && flags.validation.empty()) return;
  const std::vector<HeldRun> runs = held_runs(points, request);
  if (runs.empty()) {
    throw UsageError(
        "no row has a measurement and a prediction, so that there is no evidence to write; the "
        "report says why");
  }
  const EvidenceTable table =
      evidence_of(runs, fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))));
  if (!flags.evidence.empty()) write_file(flags.evidence, print_class_evidence(table));
  if (!flags.validation.empty()) {
    write_file(flags.validation, validation_page(table, coverage_of(runs), flags.points));
  }
}

int published(const PublishedFlags& flags) {
  check_pictures(flags.svg);
  std::vector<OutputFile> outputs = picture_files(flags.svg);
  outputs.push_back({"--json", flags.json});
  outputs.push_back({"--markdown", flags.markdown});
  outputs.push_back({"--evidence-out", flags.evidence});
  outputs.push_back({"--validation-out", flags.validation});
  const bool silent = to_stdout(outputs);
  JudgeRequest request;
  request.calibration = open_calibration(flags.calibration);
  if (answers_simulated(flags)) return 0;
  PointsFile read = read_files(flags.points);
  const std::size_t rows = read.points.size();
  const std::vector<Point> points = of_source(std::move(read.points), flags.source);
  const std::vector<JudgedPoint> judged = judge_points(points, request);
  const std::string unread = unread_text(read.unread, rows, text_width());
  if (!flags.json.empty()) write_file(flags.json, published_json(judged, read.unread));
  if (!flags.markdown.empty()) {
    write_file(
        flags.markdown,
        published_markdown(judged, fmt::format("{}", fmt::join(flags.points, ", ")), read.unread));
  }
  write_evidence(flags, points, request);
  if (any_picture(flags.svg)) {
    write_pictures(flags.svg, picture(flags.svg, [&](const report::SvgOptions& options) {
                     return published_svg(judged, options);
                   }));
  }
  if (silent) {
    if (!unread.empty()) fmt::print(stderr, "{}", unread);
    return 0;
  }
  if (flags.rows) show("{}\n", published_rows_text(judged, text_width()));
  show("{}", published_text(judged, text_width()));
  if (!unread.empty()) show("\n{}", unread);
  return 0;
}

void add_published(Flags command) {
  const auto flags = std::make_shared<PublishedFlags>();
  command
      .option("POINTS", flags->points,
              "CSV files of published measurements (columns in tools/published/README.md), or "
              "vTrain's; - is standard input")
      .required();
  command.option("--source", flags->source, "only rows whose source has this word in it");
  const Flags output = command.in(SettingGroup::output);
  command.in(SettingGroup::model)
      .option("--calibration", flags->calibration,
              "rates fitted by `stageline calibrate`, instead of the built-in ones; its rows "
              "are reported apart");
  output.flag("--rows", flags->rows, "a line for each row before the figures");
  output
      .option("--markdown", flags->markdown, "write a page with all rows, or - for standard output")
      .writes_file();
  output.option("--json", flags->json, "write all figures and rows as JSON, or - for stdout")
      .writes_file();
  output
      .option("--evidence-out", flags->evidence,
              "write the errors by class of run, of which ranges of answers are made "
              "(tools/study/evidence/evidence.csv), or - for standard output")
      .writes_file();
  output
      .option("--validation-out", flags->validation,
              "write the page of coverage and error by class, or - for standard output")
      .writes_file();
  add_svg_flag(command, flags->svg, "draw predicted over measured step times");
  add_svg_style_flags(command, flags->svg);
  command.footer(
      "Example:\n  stageline published points.csv --source \"Zero Bubble\" --rows --svg zb.svg");
  command.runs([flags] { return published(*flags); });
}

}  // namespace

extern const Command published_command;
const Command published_command = {
    "published", "Predict published measurements of training runs, and report the deviations",
    add_published, ""};

}  // namespace stageline::cli
