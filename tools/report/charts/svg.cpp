// Draws curves as SVG. From top to bottom: title, key (where names do not fit beside the curves),
// labels of vertical lines, the plot with the names at its right, the x axis, footnotes.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tools/report/charts/layout.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t most_markers = 40;

bool same_place(ChartPlace a, ChartPlace b) {
  return std::abs(a.x - b.x) < 2 && std::abs(a.y - b.y) < 2;
}

std::vector<Tick> x_ticks(const Chart& chart, const ChartLayout& layout) {
  const double width = layout.plot.right - layout.plot.left - 2 * inset;
  for (int intervals = std::max(1, static_cast<int>(width / 44)); intervals > 1; --intervals) {
    std::vector<Tick> all = ticks(layout.x, intervals, chart.x.whole);
    bool fits = true;
    for (std::size_t i = 1; i < all.size(); ++i) {
      const double room = layout.px(all[i].at) - layout.px(all[i - 1].at);
      fits = fits && room >= 8 + text_width(all[i].label, tick_size) / 2 +
                                 text_width(all[i - 1].label, tick_size) / 2;
    }
    if (fits) return all;
  }
  return ticks(layout.x, 1, chart.x.whole);
}

std::string axes(const Chart& chart, const ChartLayout& layout, const std::vector<Tick>& y_ticks) {
  const Plot& plot = layout.plot;
  std::string out;
  for (const Tick& tick : y_ticks) {
    const double y = layout.py(tick.at);
    out += line_at(plot.left, y, plot.right, y, "grid");
    out += text_at(plot.left - 6, y + 4, "d r", tick_size, tick.label);
  }
  for (const Tick& tick : x_ticks(chart, layout)) {
    const double x = layout.px(tick.at);
    out += line_at(x, plot.bottom, x, plot.bottom + 4, "axis");
    out += text_at(x, plot.bottom + 17, "d n", tick_size, tick.label);
  }
  out += line_at(plot.left, plot.bottom, plot.right, plot.bottom, "axis");
  return out + text_at(plot.right, plot.bottom + 34, "d r", tick_size, axis_title(chart.x));
}

// The path "M..L..", with a new M after each gap.
std::string path_of(const Series& series, const ChartLayout& layout) {
  std::string out;
  bool pen_down = false;
  for (const ChartPoint& point : series.points) {
    if (!point.y) {
      pen_down = false;
      continue;
    }
    const ChartPlace at = layout.of(point);
    const std::string x = svg_number(at.x);
    const std::string y = svg_number(at.y);
    if (!pen_down) {
      out += fmt::format("M{} {}", x, y);
    } else if (series.style == SeriesStyle::step) {
      out += fmt::format("H{}V{}", x, y);
    } else {
      out += fmt::format("L{} {}", x, y);
    }
    pen_down = true;
  }
  return out;
}

// Whether the line of a later series covers at least half of this one's points, and two of them:
// its line is drawn wider, so that both are visible.
bool hidden_by_later(const Chart& chart, const std::vector<std::vector<ChartPlace>>& places,
                     std::size_t series) {
  for (std::size_t later = series + 1; later < places.size(); ++later) {
    if (chart.series[later].faint || chart.series[later].style == SeriesStyle::points) continue;
    std::size_t shared = 0;
    for (const ChartPlace place : places[series]) {
      const bool meets = std::any_of(places[later].begin(), places[later].end(),
                                     [&](ChartPlace other) { return same_place(place, other); });
      shared += meets ? 1 : 0;
    }
    if (shared >= 2 && 2 * shared >= places[series].size()) return true;
  }
  return false;
}

std::string tooltip(const Chart& chart, const Series& series, const ChartPoint& point) {
  return fmt::format("{}: {} at {}", series.name, value_text(*point.y, chart.y.unit),
                     value_text(point.x, chart.x.unit.empty() ? chart.x.label : chart.x.unit));
}

// Lines and markers of one kind, faint or not. `places` by series.
struct CurveParts {
  std::string lines;
  std::string markers;
};

void add_line(CurveParts& out, const Chart& chart, const ChartLayout& layout, std::size_t number,
              const std::vector<std::vector<ChartPlace>>& places) {
  const Series& series = chart.series[number];
  if (series.style == SeriesStyle::points || places[number].size() < 2) return;
  const bool dashed = series.style == SeriesStyle::dashed;
  const bool wide = !series.faint && hidden_by_later(chart, places, number);
  out.lines += fmt::format(
      "<path class=\"{}{}\" d=\"{}\"/>\n",
      series.faint ? faint_line_classes(dashed) : line_classes(ink_of(chart, number), dashed),
      wide ? " wide" : "", path_of(series, layout));
}

// A line from the low to the high end with a cap at each.
std::string whiskers(const ChartPoint& point, ChartPlace at, const ChartLayout& layout) {
  constexpr double cap = 4;  // px, half its length
  std::string out;
  if (point.x_range) {
    const double low = layout.px(point.x_range->low);
    const double high = layout.px(point.x_range->high);
    out += line_at(low, at.y, high, at.y, "axis") +
           line_at(low, at.y - cap, low, at.y + cap, "axis") +
           line_at(high, at.y - cap, high, at.y + cap, "axis");
  }
  if (point.y_range) {
    const double low = layout.py(point.y_range->low);
    const double high = layout.py(point.y_range->high);
    out += line_at(at.x, low, at.x, high, "axis") +
           line_at(at.x - cap, low, at.x + cap, low, "axis") +
           line_at(at.x - cap, high, at.x + cap, high, "axis");
  }
  return out;
}

void add_markers(CurveParts& out, const Chart& chart, const ChartLayout& layout, std::size_t number,
                 const std::vector<std::vector<ChartPlace>>& places) {
  const Series& series = chart.series[number];
  const std::size_t n = places[number].size();
  const bool few = n <= most_markers || series.style == SeriesStyle::points;
  const std::size_t stride = few ? 1 : n / 12;
  std::size_t index = 0;  // of the point among those with a y
  for (const ChartPoint& point : series.points) {
    if (!point.y) continue;
    const std::size_t k = index++;
    if (series.few_markers ? point.label.empty() : k % stride != 0 && k + 1 != n) continue;
    const ChartPlace at = places[number][k];
    out.lines += whiskers(point, at, layout);
    const std::string words = few || series.few_markers ? tooltip(chart, series, point) : "";
    if (series.faint) {
      out.markers += faint_marker(at.x, at.y, point.open, words);
      continue;
    }
    if (point.marked) {
      out.markers += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"9\"/>\n",
                                 line_classes(ink_of(chart, number), false), svg_number(at.x),
                                 svg_number(at.y));
    }
    // On top of an earlier series' marker: smaller, so that both are visible.
    double scale = 1;
    for (std::size_t earlier = 0; earlier < number; ++earlier) {
      if (chart.series[earlier].faint) continue;
      const bool meets = std::any_of(places[earlier].begin(), places[earlier].end(),
                                     [&](ChartPlace other) { return same_place(at, other); });
      if (meets) scale *= 0.62;
    }
    out.markers +=
        marker(ink_of(chart, number), at.x, at.y, point.open, std::max(scale, 0.3), words);
  }
}

std::string curves(const Chart& chart, const ChartLayout& layout) {
  std::vector<std::vector<ChartPlace>> places;
  for (const Series& series : chart.series) places.push_back(places_of(series, layout));
  CurveParts faint;
  CurveParts others;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    CurveParts& out = chart.series[i].faint ? faint : others;
    add_line(out, chart, layout, i, places);
    add_markers(out, chart, layout, i, places);
  }
  return faint.lines + faint.markers + others.lines + others.markers;
}

}  // namespace

std::string chart_svg(const Chart& chart, const SvgOptions& options) {
  check(chart);
  check(options);
  const double width = options.width;
  const double height = std::min(std::max(0.4 * width, 220.0), 480.0);
  const int y_intervals = std::max(2, static_cast<int>(height / 52));
  const auto names = static_cast<double>(name_count(chart));

  ChartLayout layout;
  layout.x = x_scale(chart);
  layout.y = y_scale(chart, y_intervals);
  const std::vector<Tick> y_ticks = ticks(layout.y, y_intervals, chart.y.whole);
  double numbers = 0;
  for (const Tick& tick : y_ticks) {
    numbers = std::max(numbers, text_width(tick.label, tick_size));
  }
  const double beside = widest_name(chart);
  layout.names_beside = !chart.key_above && beside <= 0.34 * width && names * name_gap <= height;
  layout.plot.left = page_margin + numbers + 8;
  layout.plot.right = width - page_margin - (layout.names_beside ? lead_length + beside : 0);

  Fragment head = page_head(chart.title, chart.subtitle, options);
  double y = head.bottom + 8;
  if (!layout.names_beside) {
    const Fragment key = names_above(chart, width, y);
    head.text += key.text;
    y = key.bottom;
  }
  head.text += text_at(page_margin, y + 11, "d", tick_size, axis_title(chart.y));
  y += 16;
  const std::vector<NameFlag> flags = flags_of(chart, layout, width);
  std::size_t rows = 0;
  for (const NameFlag& flag : flags) rows = std::max(rows, flag.row + 1);
  const double flags_bottom = y + 14 * static_cast<double>(rows);
  layout.plot.top = flags_bottom + 8;
  layout.plot.bottom = layout.plot.top + height;

  std::string body = head.text + axes(chart, layout, y_ticks);
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const double x = layout.px(chart.vertical[i].at);
    const double base = flags_bottom - 3 - 14 * static_cast<double>(flags[i].row);
    body += text_at(flags[i].x, base, "d", tick_size, chart.vertical[i].label);
    body += line_at(x, base - 9, x, layout.plot.bottom, "ref");
  }
  for (const ReferenceLine& line : chart.horizontal) {
    const double at = layout.py(line.at);
    body += line_at(layout.plot.left, at, layout.plot.right, at, "ref");
  }
  body += curves(chart, layout);
  body += point_labels(chart, layout);
  if (layout.names_beside) body += names_beside(chart, layout);
  return chart_document(chart.title,
                        fmt::format("Chart of {} against {}: {} series.", chart.y.label,
                                    chart.x.label, chart.series.size()),
                        body, layout.plot.bottom + 38, chart.footnotes, options);
}

}  // namespace stageline::report
