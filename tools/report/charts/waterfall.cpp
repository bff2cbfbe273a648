// Draws waterfalls as SVG. From top to bottom: title, legend, bars, axis, footnotes.
#include "tools/report/charts/waterfall.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/errors.hpp"
#include "tools/report/charts/axis.hpp"
#include "tools/report/charts/layout.hpp"
#include "tools/report/charts/page.hpp"
#include "tools/report/charts/waterfall_stacks.hpp"
#include "tools/report/svg/text.hpp"

namespace stageline::report {
namespace {

constexpr double bar_thickness = 13;  // px, of a bar
constexpr double between_bars = 3;    // px, between_bars the bars of a row
constexpr double label_gap = 9;       // px, between_bars rows
constexpr double least_bar = 1.5;
constexpr std::size_t most_waterfalls = 2;

std::string rectangle(double x, double y, double width, const std::string& classes,
                      const std::string& style = "") {
  return fmt::format("<rect class=\"{}\"{} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                     classes, style, svg_number(x), svg_number(y), svg_number(width),
                     svg_number(bar_thickness));
}

// Bars of the first waterfall are solid, those of the second hatched.
std::string box(std::size_t waterfall, double x, double y, double width) {
  if (waterfall == 0) return rectangle(x, y, width, "f0");
  return rectangle(x, y, width, "s1 bg open") +
         rectangle(x, y, width, "", " fill=\"url(#stageline-hatch-band)\"");
}

void check(const WaterfallChart& chart) {
  if (chart.rows.empty() || chart.waterfalls.empty()) throw UsageError("there is nothing to draw");
  if (chart.waterfalls.size() > most_waterfalls) {
    throw UsageError(
        fmt::format("a picture has one waterfall or two, not {}", chart.waterfalls.size()));
  }
  for (const WaterfallRow& row : chart.rows) {
    for (const WaterfallBar& bar : row.bars) {
      if (!std::isfinite(bar.from) || !std::isfinite(bar.to)) {
        throw UsageError(fmt::format("{} is not a finite number", row.name));
      }
    }
  }
}

struct BarExtent {
  double low = 0;
  double high = 0;
  double names = 0;    // px
  double numbers = 0;  // px
};

BarExtent extent_of(const WaterfallChart& chart, double width) {
  BarExtent extent;
  for (const WaterfallRow& row : chart.rows) {
    extent.names = std::max(extent.names, text_width(shortened(row.name, 40), name_size));
    for (const WaterfallBar& bar : row.bars) {
      extent.low = std::min({extent.low, bar.from, bar.to});
      extent.high = std::max({extent.high, bar.from, bar.to});
      extent.numbers = std::max(extent.numbers, text_width(bar.words, tick_size));
    }
  }
  for (const WaterfallStack& stack : chart.stacks) {
    const auto [below, above] = stack_ends(stack);
    extent.low = std::min(extent.low, below);
    extent.high = std::max(extent.high, above);
    extent.names = std::max(extent.names, text_width(shortened(stack.name, 40), name_size));
  }
  if (extent.low == extent.high) extent.high = 1;
  extent.names = std::min(extent.names, 0.4 * width);
  return extent;
}

}  // namespace

std::string waterfall_svg(const WaterfallChart& chart, const SvgOptions& options) {
  check(chart);
  check(options);
  const double width = options.width;
  const BarExtent extent = extent_of(chart, width);
  const ValueScale scale{extent.low, extent.high, false};
  const double left = page_margin + extent.names + 14;
  const double right = width - page_margin - extent.numbers - 10;
  const auto px = [&](double value) { return left + scale.share(value) * (right - left); };

  Fragment head = page_head(chart.title, chart.subtitle, options);
  std::string body = head.text;
  double y = head.bottom + 8;
  if (chart.waterfalls.size() > 1) {
    double x = page_margin;
    for (std::size_t w = 0; w < chart.waterfalls.size(); ++w) {
      body += box(w, x, y, 18) + text_at(x + 24, y + 11, "d", tick_size, chart.waterfalls[w]);
      x += 24 + text_width(chart.waterfalls[w], tick_size) + 20;
    }
    y += 24;
  }
  const double top = y;
  std::string bars;
  std::array<double, most_waterfalls> ends{};  // px, of the bar above
  std::array<double, most_waterfalls> under{};
  for (std::size_t r = 0; r < chart.rows.size(); ++r) {
    const WaterfallRow& row = chart.rows[r];
    y += label_gap / 2;
    bars += text_at(page_margin, y + 11, "t", name_size, shortened(row.name, 40));
    for (std::size_t w = 0; w < row.bars.size(); ++w) {
      const WaterfallBar& bar = row.bars[w];
      const double begin = std::min(px(bar.from), px(bar.to));
      const double length = std::max(std::abs(px(bar.to) - px(bar.from)), least_bar);
      bars += "<g>";
      if (!bar.tooltip.empty()) bars += "<title>" + xml_escaped(bar.tooltip) + "</title>";
      bars += "\n" + box(w, begin, y, length) + "</g>\n";
      bars += text_at(width - page_margin, y + 11, "d r", tick_size, bar.words);
      if (r > 0) bars += line_at(ends[w], under[w], ends[w], y, "lead");
      ends[w] = px(bar.to);
      under[w] = y + bar_thickness;
      y += bar_thickness + (w + 1 < row.bars.size() ? between_bars : 0);
    }
    y += label_gap / 2;
  }
  if (!chart.stacks.empty()) {
    const StackFrame frame{page_margin, left, right, width, &scale};
    const Fragment stacks = draw_stacks(chart, frame, y + 10);
    bars += stacks.text;
    y = stacks.bottom;
  }
  const double bottom = y + 4;
  std::string grid;
  const int intervals = std::max(1, static_cast<int>((right - left) / 90));
  for (const Tick& tick : ticks(scale, intervals, false)) {
    const double at = px(tick.at);
    grid += line_at(at, top, at, bottom, "grid");
    grid += text_at(at, bottom + 15, "d n", tick_size, tick.label);
  }
  body += grid + bars + line_at(px(0), top, px(0), bottom, "axis");
  body += text_at(right, bottom + 32, "d r", tick_size, chart.label);
  return chart_document(chart.title,
                        fmt::format("Waterfall of {} from the ideal to the real one.", chart.label),
                        body, bottom + 36, chart.footnotes, options);
}

}  // namespace stageline::report
