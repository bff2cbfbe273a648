// Declares the flags for pictures, converts them to options, and writes the files.
#include "tools/commands/svg_flags.hpp"

#include <fmt/core.h>

#include <utility>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/convert_svg.hpp"
#include "tools/report/svg/aspect.hpp"
#include "tools/report/svg/width.hpp"

namespace stageline::cli {

Flag add_svg_flag(Flags command, SvgFlags& flags, const std::string& help) {
  const Flags output = command.in(SettingGroup::output);
  Flag svg = output.common().option("--svg", flags.file, help).writes_file();
  output
      .option("--pdf", flags.pdf,
              "the same picture as PDF, or - for stdout; needs rsvg-convert (Debian: "
              "librsvg2-bin)")
      .writes_file();
  output
      .option("--png", flags.png,
              "the same as PNG, with 2 × 2 pixels for each of the SVG; needs rsvg-convert")
      .writes_file();
  return svg;
}

void add_svg_style_flags(Flags command, SvgFlags& flags) {
  const Flags output = command.in(SettingGroup::output);
  output.option("--theme", flags.theme, "theme of the picture: auto, light or dark; default: auto")
      .one_of({"auto", "light", "dark"});
  output.option("--width", flags.width, "width of the picture in pixels; default: 1000")
      .range(report::least_picture, report::most_picture);
  output.option("--aspect", flags.aspect,
                "shape of the picture, such as 16:9 for a slide: its width follows from that");
  output.option("--title", flags.title, "title of the picture, in the place of its own");
  output.flag(
      "--plain", flags.plain,
      "the figure alone, for a paper or a slide: no heading other than --title and no notes, "
      "on a transparent ground");
}

report::SvgOptions svg_options(const SvgFlags& flags) {
  report::SvgOptions options;
  if (flags.width > 0) options.width = flags.width;
  options.title = flags.title;
  options.plain = flags.plain;
  options.theme = flags.theme == "light"  ? report::Theme::light
                  : flags.theme == "dark" ? report::Theme::dark
                                          : report::Theme::automatic;
  return options;
}

bool any_picture(const SvgFlags& flags) {
  return !flags.file.empty() || !flags.pdf.empty() || !flags.png.empty();
}

void check_pictures(const SvgFlags& flags) {
  if (!flags.aspect.empty()) {
    report::aspect_of(flags.aspect);
    if (flags.width > 0) {
      throw UsageError(
          "--width and --aspect exclude each other: the height of a picture follows from its content");
    }
  }
  if (any_picture(flags)) return;
  for (const auto& [given, name] :
       {std::pair{!flags.theme.empty(), "--theme"}, std::pair{flags.width > 0, "--width"},
        std::pair{!flags.aspect.empty(), "--aspect"}, std::pair{!flags.title.empty(), "--title"},
        std::pair{flags.plain, "--plain"}}) {
    if (given) {
      throw UsageError(fmt::format("{} needs a picture: --svg, --pdf or --png", name));
    }
  }
}

std::string picture(const SvgFlags& flags,
                    const std::function<std::string(const report::SvgOptions&)>& draw) {
  const report::SvgOptions options = svg_options(flags);
  if (flags.aspect.empty()) return draw(options);
  return report::in_aspect(report::aspect_of(flags.aspect), options, draw);
}

std::vector<OutputFile> picture_files(const SvgFlags& flags) {
  return {{"--svg", flags.file}, {"--pdf", flags.pdf}, {"--png", flags.png}};
}

bool to_stdout(const std::vector<OutputFile>& files) {
  std::vector<std::string_view> all;
  for (const OutputFile& one : files) {
    if (one.file == "-") all.push_back(one.flag);
  }
  if (all.size() > 1) {
    throw UsageError(
        fmt::format("only one of {} and {} can go to standard output (-)", all[0], all[1]));
  }
  return !all.empty();
}

void write_pictures(const SvgFlags& flags, const std::string& svg) {
  if (!flags.file.empty()) write_file(flags.file, svg);
  if (!flags.pdf.empty()) write_file(flags.pdf, converted(svg, PictureFormat::pdf));
  if (!flags.png.empty()) write_file(flags.png, converted(svg, PictureFormat::png));
}

}  // namespace stageline::cli
