// Draws a tornado as SVG. From top to bottom: title, legend, axis, bars, footnotes.
#include "tools/report/charts/tornado.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/report/charts/axis.hpp"
#include "tools/report/charts/layout.hpp"
#include "tools/report/charts/page.hpp"
#include "tools/report/svg/text.hpp"

namespace stageline::report {
namespace {

constexpr double pitch = 20;      // px, of bars
constexpr double thickness = 13;  // px
constexpr const char* solid = "f0";
constexpr const char* framed = "s0 bg open";
constexpr const char* hatched_frame = "s1 bg open";

std::string rectangle(double x, double y, double width, double height, const std::string& classes,
                      const std::string& style = "") {
  return fmt::format("<rect class=\"{}\"{} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                     classes, style, svg_number(x), svg_number(y), svg_number(width),
                     svg_number(height));
}

std::string hatched(double x, double y, double width, double height) {
  return rectangle(x, y, width, height, hatched_frame) +
         rectangle(x, y, width, height, "", " fill=\"url(#stageline-hatch-band)\"");
}

std::string percent_text(double value) { return fmt::format("{:+.1f} %", value); }

void check(const Tornado& tornado) {
  if (tornado.bars.empty()) throw UsageError("there is nothing to draw");
  for (const TornadoBar& bar : tornado.bars) {
    if (!std::isfinite(bar.faster) || !std::isfinite(bar.twice) || !std::isfinite(bar.slower)) {
      throw UsageError(fmt::format("{} is not a finite number", bar.name));
    }
  }
}

// A swatch and its words; returns where the next one begins.
double key(std::string& out, double x, double y, const std::string& swatch,
           const std::string& words) {
  out += swatch + text_at(x + 24, y + 10, "d", tick_size, words);
  return x + 24 + text_width(words, tick_size) + 20;
}

}  // namespace

std::string tornado_svg(const Tornado& tornado, const SvgOptions& options) {
  check(tornado);
  check(options);
  const double width = options.width;
  double low = 0;
  double high = 0;
  double names = 0;
  double numbers = 0;
  for (const TornadoBar& bar : tornado.bars) {
    low = std::min({low, bar.faster, bar.twice, bar.slower});
    high = std::max({high, bar.faster, bar.twice, bar.slower});
    names = std::max(names, text_width(shortened(bar.name, 40), name_size));
    numbers = std::max(numbers, text_width(percent_text(bar.faster), tick_size));
  }
  if (low == high) high = 1;
  const ValueScale scale{low, high, false};
  names = std::min(names, 0.4 * width);
  const double left = page_margin + names + 14 + numbers;
  const double right = width - page_margin - 10;
  const auto px = [&](double value) { return left + scale.share(value) * (right - left); };

  Fragment head = page_head(tornado.title, tornado.subtitle, options);
  std::string body = head.text;
  double y = head.bottom + 8;
  double x = page_margin;
  x = key(body, x, y, rectangle(x, y, 18, thickness, solid), "10 % faster");
  x = key(body, x, y, rectangle(x, y, 18, thickness, framed), "twice as fast");
  key(body, x, y, hatched(x, y, 18, thickness), "10 % slower");
  y += 28;

  const double top = y;
  const double bottom = top + pitch * static_cast<double>(tornado.bars.size()) + 4;
  std::string grid;
  const int intervals = std::max(1, static_cast<int>((right - left) / 90));
  for (const Tick& tick : ticks(scale, intervals, false)) {
    const double at = px(tick.at);
    grid += line_at(at, top, at, bottom, "grid");
    grid += text_at(at, bottom + 15, "d n", tick_size, tick.label);
  }
  std::string bars;
  for (const TornadoBar& bar : tornado.bars) {
    const auto span = [&](double value) {
      return std::pair(std::min(px(0), px(value)), std::abs(px(value) - px(0)));
    };
    bars += fmt::format("<g><title>{}</title>\n", xml_escaped(bar.words));
    bars += text_at(page_margin, y + 12, "t", name_size, shortened(bar.name, 40));
    if (bar.twice != 0) {
      const auto [begin, length] = span(bar.twice);
      bars += rectangle(begin, y + 2, length, thickness, framed);
    }
    if (bar.faster != 0) {
      const auto [begin, length] = span(bar.faster);
      bars += rectangle(begin, y + 2, length, thickness, solid);
    }
    if (bar.slower != 0) {
      const auto [begin, length] = span(bar.slower);
      bars += hatched(begin, y + 2, length, thickness);
    }
    bars += text_at(left - 6, y + 12, "d r", tick_size, percent_text(bar.faster));
    bars += "</g>\n";
    y += pitch;
  }
  body += grid + bars + line_at(px(0), top, px(0), bottom, "axis");
  body += text_at(right, bottom + 32, "d r", tick_size, tornado.label);
  return chart_document(tornado.title,
                        fmt::format("Tornado of {} changes of the step.", tornado.bars.size()),
                        body, bottom + 36, tornado.footnotes, options);
}

}  // namespace stageline::report
