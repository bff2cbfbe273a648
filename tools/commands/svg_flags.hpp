// --svg, --theme and --width, for the commands that draw.
#pragma once

#include <string>

#include "tools/commands/flags.hpp"
#include "tools/report/timeline/svg.hpp"

namespace stageline {

/// The values as typed.
struct SvgFlags {
  std::string file;  // "-": standard output; empty: no picture
  std::string theme = "auto";
  int width = 1000;  // pixels
};

/// --svg, with this help.
Flag add_svg_flag(Flags command, SvgFlags& flags, const std::string& help);
/// --theme and --width, which require `svg`.
void add_svg_style_flags(Flags command, SvgFlags& flags, Flag svg);

SvgOptions svg_options(const SvgFlags& flags);

}  // namespace stageline
