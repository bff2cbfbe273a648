// stageline overlay: two runs of one pipeline, one above the other.
#include <fmt/format.h>

#include <memory>

#include "sim/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/commands.hpp"
#include "tools/report/text/overlay.hpp"

namespace stageline {
namespace {

struct OverlayFlags {
  std::vector<std::string> files;
  std::vector<std::string> measured;
  std::string svg;
  std::string json;
  std::string theme = "auto";
  int width = 1000;
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
  if (flags.svg == "-" && flags.json == "-") {
    throw UsageError("only one of --json and --svg can go to standard output (-)");
  }
  const Overlay found = overlay(flags);
  if (!flags.svg.empty()) {
    SvgOptions options;
    options.width = flags.width;
    options.theme = flags.theme == "light"  ? Theme::light
                    : flags.theme == "dark" ? Theme::dark
                                            : Theme::automatic;
    write_file(flags.svg, overlay_svg(found, options));
  }
  if (!flags.json.empty()) write_file(flags.json, overlay_json(found));
  if (flags.svg == "-" || flags.json == "-") return;
  fmt::print("{}", overlay_text(found, flags.top));
  if (flags.quiet) return;
  for (const std::string& note : found.notes) fmt::print("note: {}\n", note);
}

}  // namespace

void add_overlay(CLI::App& app, int&) {
  CLI::App* const command = app.add_subcommand(
      "overlay", "Two timelines of one pipeline, a model and a measured run or any two, op by op");
  const auto flags = std::make_shared<OverlayFlags>();
  command
      ->add_option("TIMELINE", flags->files,
                   "a file of simulate --json --timeline, a Chrome trace, or PyTorch profiles of "
                   "one run, one a rank; gzip or plain")
      ->required();
  command->add_option("--measured", flags->measured,
                      "the second timeline: profiles of one run, one a rank, or one file");
  command->add_option("--json", flags->json, "write all ops as JSON to a file, or - for stdout");
  CLI::Option* const svg =
      command->add_option("--svg", flags->svg, "write one picture of both, or - for stdout");
  command->add_option("--theme", flags->theme, "of the SVG: auto, light or dark; default auto")
      ->check(CLI::IsMember({"auto", "light", "dark"}))
      ->needs(svg);
  command->add_option("--width", flags->width, "of the SVG in pixels; default 1000")
      ->check(CLI::Range(400, 10000))
      ->needs(svg);
  command->add_option("--top", flags->top, "how many ops to list; default 10")
      ->check(CLI::Range(0, 1 << 20));
  command
      ->add_option("--step", flags->step,
                   "which step of runs of several, from 0; default that of median length")
      ->check(CLI::Range(0, 1 << 26));
  command->add_flag("--quiet", flags->quiet, "no notes");
  command->footer(
      "Example:\n  stageline simulate uniform:layers=4 --devices 2 --json model.json --timeline\n"
      "  stageline draw uniform:layers=4 --schedule gpipe --devices 2 --chrome other.json\n"
      "  stageline overlay model.json other.json --svg both.svg\n"
      "With profiles of a real run: overlay model.json --measured rank0.json.gz rank1.json.gz");
  command->callback([flags] { run(*flags); });
}

}  // namespace stageline
