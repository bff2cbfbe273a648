// stageline published: published measurements of training runs, predicted and compared.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/traces.hpp"
#include "tools/published/report.hpp"
#include "tools/published/vtrain.hpp"

namespace stageline {
namespace {

struct PublishedFlags {
  std::string points;
  std::string source;
  std::string calibration;
  std::string markdown;
  std::string json;
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

int published(const PublishedFlags& flags) {
  check_pictures(flags.svg);
  std::vector<OutputFile> outputs = picture_files(flags.svg);
  outputs.push_back({"--json", flags.json});
  outputs.push_back({"--markdown", flags.markdown});
  const bool silent = to_stdout(outputs);
  const std::string csv = read_text(flags.points);
  JudgeRequest request;
  request.calibration = open_calibration(flags.calibration);
  if (is_vtrain_simulated(csv)) {
    if (!flags.json.empty() || !flags.markdown.empty() || any_picture(flags.svg) || flags.rows) {
      throw UsageError(
          "vTrain's single-node file has no measurements, and is answered with two sentences; "
          "leave out --rows, --json, --markdown and pictures");
    }
    print_wrapped(composition_text(compose_vtrain(csv, flags.points)));
    return 0;
  }
  PointsFile read =
      is_vtrain(csv) ? read_vtrain_file(csv, flags.points) : read_points_file(csv, flags.points);
  const std::size_t rows = read.points.size();
  const std::vector<JudgedPoint> judged =
      judge_points(of_source(std::move(read.points), flags.source), request);
  const std::string unread = unread_text(read.unread, rows, text_width());
  if (!flags.json.empty()) write_file(flags.json, published_json(judged, read.unread));
  if (!flags.markdown.empty()) {
    write_file(flags.markdown, published_markdown(judged, flags.points, read.unread));
  }
  if (any_picture(flags.svg)) {
    write_pictures(flags.svg, published_svg(judged, svg_options(flags.svg)));
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
              "a CSV file of published measurements (columns in tools/lab/evidence/published), or "
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

}  // namespace stageline
