// The elements of the page: text, lines, legend, axis of time.
#include "tools/report/timeline/svg_page.hpp"

#include <fmt/core.h>

#include "tools/report/timeline/svg_arrows.hpp"

namespace stageline::report {
namespace {

// The ticks within the window, ascending.
std::vector<std::int64_t> ticks_of(const Frame& frame) {
  const std::int64_t step = frame.axis.step;
  const std::int64_t first = (frame.scale.start.count() + step - 1) / step;
  std::vector<std::int64_t> ticks;
  for (std::int64_t i = first; i <= frame.scale.end.count() / step; ++i) ticks.push_back(i * step);
  return ticks;
}

}  // namespace

std::string text_at(double x, double y, std::string_view classes, double size,
                    std::string_view text) {
  return fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" font-size=\"{}\">{}</text>\n", classes,
                     svg_number(x), svg_number(y), svg_number(size), xml_escaped(text));
}

std::string page_ground(const SvgOptions& options, const std::string& height) {
  if (options.plain) return "";
  return fmt::format("<rect class=\"bg\" width=\"{}\" height=\"{}\"/>\n", options.width, height);
}

std::string line_at(double x1, double y1, double x2, double y2, std::string_view classes) {
  return fmt::format("<path class=\"{}\" d=\"M{} {}L{} {}\"/>\n", classes, svg_number(x1),
                     svg_number(y1), svg_number(x2), svg_number(y2));
}

Fragment paragraph(std::string_view text, const TextBlock& block, std::string_view classes,
                   double top) {
  Fragment result;
  result.bottom = top;
  for (const std::string& line :
       text_lines(std::string(text), block.right - block.left, block.size)) {
    result.text += text_at(block.left, result.bottom + block.size, classes, block.size, line);
    result.bottom += block.pitch;
  }
  return result;
}

namespace {

// A mark as it is on boxes, upon a swatch.
std::string swatch_mark(StageMark mark, double x, double y) {
  const Boxes swatch{{{x, 13, 0, 1, static_cast<int>(Tone::pale_forward), 0}}, 0};
  switch (mark) {
    case StageMark::none:
      return "";
    case StageMark::bar:
      return bars(swatch, y, 10);
    case StageMark::notches:
      return notches(swatch, {2}, y, 10);
  }
  return "";  // unreachable; g++ requires it
}

}  // namespace

Fragment legend(const std::vector<LegendEntry>& entries, const Frame& frame, double top) {
  constexpr double size = 11;
  constexpr double line = 18;
  Fragment result;
  double x = frame.left;
  double y = top;
  for (const LegendEntry& entry : entries) {
    const double width = 18 + text_width(entry.words, size) + 14;
    if (x > frame.left && x + width - 14 > frame.width - frame.margin) {
      x = frame.left;
      y += line;
    }
    if (entry.is_arrow) {
      result.text += arrow_swatch(entry.classes, x, y + 7, 14);
    } else {
      result.text +=
          fmt::format("<rect class=\"{} swatch\" x=\"{}\" y=\"{}\" width=\"13\" height=\"10\"/>\n",
                      entry.classes, svg_number(x), svg_number(y + 2));
      result.text += swatch_mark(entry.mark, x, y + 2);
    }
    result.text += text_at(x + 18, y + 11, "t", size, entry.words);
    x += width;
  }
  result.bottom = y + line;
  return result;
}

std::string time_grid(const Frame& frame, double top, double bottom) {
  std::string out;
  for (const std::int64_t tick : ticks_of(frame)) {
    const double x = frame.scale.x(Time{tick});
    out += line_at(x, top, x, bottom, "grid");
  }
  return out;
}

Fragment time_labels(const Frame& frame, double top) {
  Fragment result;
  result.text = line_at(frame.left, top, frame.right, top, "axis");
  for (const std::int64_t tick : ticks_of(frame)) {
    const double x = frame.scale.x(Time{tick});
    result.text += line_at(x, top, x, top + 4, "axis");
    result.text += text_at(x, top + 16, "d n", 11, tick_label(frame.axis, tick));
  }
  result.text += text_at(frame.right + 16, top + 16, "d", 11, "time, " + frame.axis.unit_name);
  result.bottom = top + 22;
  return result;
}

}  // namespace stageline::report
