// --svg, --pdf, --png, and how the picture is to look, for the commands that draw.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/commands/flags.hpp"
#include "tools/report/svg/options.hpp"

namespace stageline::cli {

/// The values as typed; empty or 0 where the flag is not given.
struct SvgFlags {
  std::string file;  // of --svg; "-": standard output
  std::string pdf;
  std::string png;
  std::string theme;
  int width = 0;  // px
  std::string aspect;
  std::string title;
  bool plain = false;
};

/// --svg, with this help, and the same picture as --pdf and --png; returns --svg.
Flag add_svg_flag(Flags command, SvgFlags& flags, const std::string& help);
/// --theme, --width, --aspect, --title and --plain.
void add_svg_style_flags(Flags command, SvgFlags& flags);

report::SvgOptions svg_options(const SvgFlags& flags);

/// Whether any picture is asked for.
bool any_picture(const SvgFlags& flags);
/// Throws UsageError for a theme, width, shape, title or --plain without a picture, for a shape
/// that is none, and for one beside a width.
void check_pictures(const SvgFlags& flags);

/// A flag that names a file, and the file.
struct OutputFile {
  std::string_view flag;
  std::string_view file;
};
/// Those of the pictures, which `flags` must outlive.
std::vector<OutputFile> picture_files(const SvgFlags& flags);
/// Whether one of them is standard output. Throws UsageError where several are.
bool to_stdout(const std::vector<OutputFile>& files);

/// The picture that `draw` makes, as these flags want it.
std::string picture(const SvgFlags& flags,
                    const std::function<std::string(const report::SvgOptions&)>& draw);

/// Writes the picture in all formats asked for. Throws UsageError as write_file() and converted()
/// do.
void write_pictures(const SvgFlags& flags, const std::string& svg);

}  // namespace stageline::cli
