// stageline overlay: compares two runs of one pipeline op by op, and draws one above the other.
#include <fmt/core.h>

#include <memory>

#include "sim/base/errors.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/report/page/study_pages.hpp"
#include "tools/report/text/overlay.hpp"

namespace stageline::cli {
namespace {

struct OverlayFlags {
  std::vector<std::string> files;
  std::vector<std::string> measured;
  SvgFlags svg;
  std::string html;
  std::string json;
  int top = 10;
  int step = -1;
  bool quiet = false;
};

std::vector<Content> read_all(const std::vector<std::string>& files) {
  std::vector<Content> contents;
  for (const std::string& file : files) contents.push_back(read_content(file));
  return contents;
}

Overlay overlay(const OverlayFlags& flags) {
  std::vector<std::vector<Content>> sides = sides_of(read_all(flags.files));
  if (!flags.measured.empty()) sides.push_back(read_all(flags.measured));
  if (sides.size() != 2) {
    throw UsageError(fmt::format(
        "overlay takes two timelines, and there {} {}; profiles of one run that follow each other "
        "are one, and --measured begins the second",
        sides.size() == 1 ? "is" : "are", sides.size()));
  }
  const std::optional<int> step = flags.step < 0 ? std::nullopt : std::optional(flags.step);
  return overlay_of(recording_of(sides[0]), recording_of(sides[1]), step);
}

void run(const OverlayFlags& flags) {
  const Outputs outputs{flags.json, flags.svg, flags.html, flags.quiet};
  check_outputs(outputs);
  const Overlay found = overlay(flags);
  Forms forms;
  forms.json = [&] { return report::overlay_json(found); };
  forms.svg = [&](const report::SvgOptions& options) {
    return report::overlay_svg(found, options);
  };
  forms.page = [&] { return report::overlay_page(found); };
  forms.text = [&] {
    const std::string notes = flags.quiet ? "" : note_lines(found.notes);
    return wrapped(report::overlay_text(found, flags.top, text_width()) + notes, text_width());
  };
  forms.wrote = {"--html"};
  deliver(outputs, forms);
}

void add_overlay(Flags command) {
  const auto flags = std::make_shared<OverlayFlags>();
  command
      .option("TIMELINE", flags->files,
              "a file of simulate --json --timeline, a Chrome trace, or PyTorch profiles of "
              "one run, one a rank; gzip or plain")
      .required();
  command.option("--measured", flags->measured,
                 "the second timeline: profiles of one run, one per rank, or one file");
  const Flags output = command.in(SettingGroup::output);
  output.option("--json", flags->json, "write all ops as JSON to a file, or - for stdout")
      .writes_file();
  add_svg_flag(command, flags->svg, "write one picture of both as SVG, or - for stdout");
  add_svg_style_flags(command, flags->svg);
  add_html_flag(
      command, flags->html,
      "write an interactive page with both on one time axis and all ops, or - for stdout");
  output.option("--top", flags->top, "number of ops to list; default: 10").range(0, 1 << 20);
  command
      .option("--step", flags->step,
              "step to compare, where a run has several, from 0; default: the one of median length")
      .range(0, 1 << 26);
  output.flag("--quiet", flags->quiet, "print no notes");
  command.footer(
      "Example:\n  stageline simulate uniform:layers=4 --devices 2 --json model.json --timeline\n"
      "  stageline draw uniform:layers=4 --schedule gpipe --devices 2 --chrome other.json\n"
      "  stageline overlay model.json other.json --svg both.svg\n"
      "With profiles of a real run: overlay model.json --measured rank0.json.gz rank1.json.gz");
  command.runs([flags] {
    run(*flags);
    return 0;
  });
}

}  // namespace

extern const Command overlay_command;
const Command overlay_command = {
    "overlay", "Compare two timelines of one pipeline, simulated or measured, op by op",
    add_overlay, ""};

}  // namespace stageline::cli
