// Draws the head, foot, styles and markers of a chart's page.
#include "tools/report/charts/page.hpp"

#include <fmt/core.h>

#include <array>

namespace stageline::report {
namespace {

struct Ink {
  const char* light;
  const char* dark;
};

// The hues of report/svg/theme.cpp (after Okabe and Ito), moved in lightness until a thin line of
// each is visible on its background. Neighbours in the list differ in lightness as well.
// clang-format off
constexpr std::array<Ink, 8> inks{{
    {"#2f7fb8", "#5cb0e6"},  // blue
    {"#cd5a0a", "#ee935a"},  // vermilion
    {"#046a50", "#2fa284"},  // green
    {"#b98500", "#f0bc46"},  // ochre
    {"#8b5a86", "#c79ac2"},  // purple
    {"#1b1e23", "#eceef1"},  // ink
    {"#c2417c", "#f27fb2"},  // pink
    {"#6b7280", "#8d95a3"},  // grey
}};
constexpr std::array<const char*, 7> shapes{{
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z",                                 // circle
    "M-3.7-3.7H3.7V3.7H-3.7Z",                                            // square
    "M0-5L4.6 3.4H-4.6Z",                                                 // triangle
    "M0-5.4L5.4 0L0 5.4L-5.4 0Z",                                         // diamond
    "M0 5L4.6-3.4H-4.6Z",                                                 // triangle, upside down
    "M-1.6-4.8H1.6V-1.6H4.8V1.6H1.6V4.8H-1.6V1.6H-4.8V-1.6H-1.6Z",        // plus
    "M0-2.2L2.5-4.7L4.7-2.5L2.2 0L4.7 2.5L2.5 4.7L0 2.2L-2.5 4.7L-4.7 2.5L-2.2 0L-4.7-2.5"
    "L-2.5-4.7Z",                                                         // cross
}};
// clang-format on

std::string ink_rules(bool dark) {
  std::string css;
  for (std::size_t i = 0; i < inks.size(); ++i) {
    const char* const colour = dark ? inks[i].dark : inks[i].light;
    css += fmt::format(".stageline .s{0}{{stroke:{1}}}.stageline .f{0}{{fill:{1}}}", i, colour);
  }
  const char* const faint = dark ? "#4a525e" : "#c3c8d0";
  css += fmt::format(".stageline .sf{{stroke:{0}}}.stageline .ff{{fill:{0}}}", faint);
  const char* const lesser = dark ? "#a2a9b4" : "#5d646e";
  return css + fmt::format(".stageline .ref,.stageline .lead{{stroke:{}}}", lesser) +
         fmt::format(".stageline .heat{{fill:{}}}", dark ? "#3b86c8" : "#2f7fb8") +
         fmt::format(".stageline .band{{stroke:{}}}", dark ? "#eceef1" : "#1b1e23");
}

std::string chart_style(Theme theme) {
  std::string css =
      ".stageline .ln{fill:none;stroke-width:1.8;stroke-linejoin:round}"
      ".stageline .faint{stroke-width:1}.stageline .wide{stroke-width:4}.stageline .dash{stroke-dasharray:7 4}"
      ".stageline .open{stroke-width:1.5}"
      ".stageline .ref{fill:none;stroke-width:1.1;stroke-dasharray:2 3}"
      ".stageline .lead{fill:none;stroke-width:.8;stroke-dasharray:1 2}"
      ".stageline .band{fill:none;stroke-width:1.6}.stageline .hatch{stroke-width:.8}";
  css += ink_rules(theme == Theme::dark);
  if (theme == Theme::automatic) {
    css += "@media (prefers-color-scheme:dark){" + ink_rules(true) + "}";
  }
  return "<style>" + css +
         "</style>\n<defs><pattern id=\"stageline-hatch-band\" width=\"6\" height=\"6\" "
         "patternUnits=\"userSpaceOnUse\"><path class=\"band hatch\" "
         "d=\"M-1 7L7-1M-1 1L1-1M5 7L7 5\"/></pattern></defs>\n";
}

}  // namespace

Fragment page_head(const std::string& title, const std::string& subtitle,
                   const SvgOptions& options) {
  const double available = options.width - 2 * page_margin;
  const std::string own = options.plain ? "" : title;
  Fragment result;
  double y = 14;
  for (const std::string& line :
       text_lines(options.title.empty() ? own : options.title, available, 17)) {
    result.text += text_at(page_margin, y + 17, "t h", 17, line);
    y += 22;
  }
  for (const std::string& line : text_lines(options.plain ? "" : subtitle, available, 12)) {
    result.text += text_at(page_margin, y + 13, "d", 12, line);
    y += 17;
  }
  result.bottom = y;
  return result;
}

std::string chart_document(const std::string& title, const std::string& desc, std::string body,
                           double bottom, const std::vector<std::string>& footnotes,
                           const SvgOptions& options) {
  double y = bottom + 10;
  for (const std::string& note : options.plain ? std::vector<std::string>{} : footnotes) {
    for (const std::string& line : text_lines(note, options.width - 2 * page_margin, 10)) {
      body += text_at(page_margin, y + 10, "d", 10, line);
      y += 14;
    }
  }
  const std::string& name = options.title.empty() ? title : options.title;
  const std::string height = svg_number(y + 12);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg class=\"stageline\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\">\n"
      "<title>{2}</title>\n<desc>{3}</desc>\n{4}{5}"
      "{6}{7}</svg>\n",
      options.width, height, xml_escaped(name.empty() ? std::string("Chart") : name),
      xml_escaped(desc), style_sheet(options.theme), chart_style(options.theme),
      page_ground(options, height), body);
}

namespace {

std::string marked(const std::string& classes, const char* shape, double x, double y, double scale,
                   std::string_view tooltip) {
  std::string out = fmt::format(
      "<path class=\"{}\" transform=\"translate({} {}){}\" d=\"{}\"", classes, svg_number(x),
      svg_number(y), scale == 1 ? "" : fmt::format(" scale({})", svg_number(scale)), shape);
  if (tooltip.empty()) return out + "/>\n";
  return out + fmt::format("><title>{}</title></path>\n", xml_escaped(tooltip));
}

}  // namespace

std::string marker(std::size_t ink, double x, double y, bool open, double scale,
                   std::string_view tooltip) {
  const std::size_t colour = ink % inks.size();
  return marked(open ? fmt::format("mark s{} bg open", colour) : fmt::format("mark f{} e", colour),
                shapes[ink % shapes.size()], x, y, scale, tooltip);
}

std::string faint_marker(double x, double y, bool open, std::string_view tooltip) {
  return marked(open ? "mark sf bg open" : "mark ff", shapes.front(), x, y, 0.5, tooltip);
}

std::string line_classes(std::size_t ink, bool dashed) {
  return fmt::format("ln s{}{}", ink % inks.size(), dashed ? " dash" : "");
}

std::string faint_line_classes(bool dashed) {
  return fmt::format("ln sf faint{}", dashed ? " dash" : "");
}

}  // namespace stageline::report
