// Declares the flags for pictures and converts them to options.
#include "tools/commands/svg_flags.hpp"

namespace stageline {

Flag add_svg_flag(Flags command, SvgFlags& flags, const std::string& help) {
  return command.option("--svg", flags.file, help);
}

void add_svg_style_flags(Flags command, SvgFlags& flags, Flag svg) {
  command.option("--theme", flags.theme, "theme of the SVG: auto, light or dark; default: auto")
      .one_of({"auto", "light", "dark"})
      .needs(svg);
  command.option("--width", flags.width, "width of the SVG in pixels; default: 1000")
      .range(400, 10000)
      .needs(svg);
}

SvgOptions svg_options(const SvgFlags& flags) {
  SvgOptions options;
  options.width = flags.width;
  options.theme = flags.theme == "light"  ? Theme::light
                  : flags.theme == "dark" ? Theme::dark
                                          : Theme::automatic;
  return options;
}

}  // namespace stageline
