// Places the names of series and reference lines.
#include <fmt/core.h>

#include <algorithm>

#include "sim/base/index.hpp"
#include "tools/report/charts/layout.hpp"

namespace stageline::report {

std::vector<ChartPlace> places_of(const Series& series, const ChartLayout& layout) {
  std::vector<ChartPlace> places;
  for (const ChartPoint& point : series.points) {
    if (point.y) places.push_back(layout.of(point));
  }
  return places;
}

namespace {

// Beside the name of a series of hollow points is a hollow marker.
bool is_open(const Series& series) {
  return !series.points.empty() &&
         std::all_of(series.points.begin(), series.points.end(),
                     [](const ChartPoint& point) { return point.open || !point.y; });
}

}  // namespace

std::vector<NameFlag> flags_of(const Chart& chart, const ChartLayout& layout, double width) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < chart.vertical.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return chart.vertical[a].at > chart.vertical[b].at;
  });
  std::vector<NameFlag> flags(order.size());
  std::vector<double> row_left;  // px, the left end of the occupied part of each row
  for (const std::size_t i : order) {
    const double needed = text_width(chart.vertical[i].label, tick_size);
    const double x = std::max(
        page_margin, std::min(layout.px(chart.vertical[i].at) + 4, width - page_margin - needed));
    std::size_t row = 0;
    while (row < row_left.size() && x + needed + 8 > row_left[row]) ++row;
    if (row == row_left.size()) row_left.push_back(0);
    row_left[row] = x;
    flags[i] = {x, row};
  }
  return flags;
}

std::string names_beside(const Chart& chart, const ChartLayout& layout) {
  struct Name {
    ChartPlace end;
    std::string text;
    std::ptrdiff_t series = -1;  // -1: a reference line
  };
  std::vector<Name> names;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    if (chart.series[i].faint) continue;
    const std::vector<ChartPlace> places = places_of(chart.series[i], layout);
    if (places.empty()) continue;
    const ChartPlace end = *std::max_element(places.begin(), places.end(),
                                             [](ChartPlace a, ChartPlace b) { return a.x < b.x; });
    names.push_back({end, chart.series[i].name, static_cast<std::ptrdiff_t>(i)});
  }
  for (const ReferenceLine& line : chart.horizontal) {
    names.push_back({{layout.plot.right, layout.py(line.at)}, line.label, -1});
  }
  std::vector<double> wanted;
  for (const Name& name : names) wanted.push_back(name.end.y);
  const std::vector<double> ys =
      spread(wanted, name_gap, layout.plot.top - 4, layout.plot.bottom + 4);
  const double x = layout.plot.right + lead_length;
  std::string leads;
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Name& name = names[i];
    const double start = name.series < 0 ? name.end.x : name.end.x + 6;
    leads += line_at(start, name.end.y, x - 3, ys[i], "lead");
    if (name.series >= 0) {
      const auto number = as_size(name.series);
      out += marker(ink_of(chart, number), x + 5, ys[i], is_open(chart.series[number]), 0.9, "");
    }
    out += text_at(x + (name.series < 0 ? 0 : 14), ys[i] + 4, name.series < 0 ? "d" : "t",
                   name_size, name.text);
  }
  return leads + out;
}

Fragment names_above(const Chart& chart, double width, double top) {
  Fragment result;
  double x = page_margin;
  double y = top;
  const auto entry = [&](const std::string& text, auto sample) {
    const std::string fitting = shortened(text, static_cast<std::size_t>((width - 90) / name_size));
    const double needed = 32 + text_width(fitting, name_size) + 14;
    if (x > page_margin && x + needed - 14 > width - page_margin) {
      x = page_margin;
      y += 18;
    }
    result.text += sample(x, y + 8) + text_at(x + 32, y + 12, "t", name_size, fitting);
    x += needed;
  };
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    if (series.faint) continue;
    const std::size_t ink = ink_of(chart, i);
    entry(series.name, [&](double at, double middle) {
      std::string out;
      if (series.style != SeriesStyle::points) {
        out += line_at(at, middle, at + 26, middle,
                       line_classes(ink, series.style == SeriesStyle::dashed));
      }
      return out + marker(ink, at + 13, middle, is_open(series), 1, "");
    });
  }
  for (const ReferenceLine& line : chart.horizontal) {
    entry(line.label,
          [&](double at, double middle) { return line_at(at, middle, at + 26, middle, "ref"); });
  }
  result.bottom = y + 22;
  return result;
}

std::size_t name_count(const Chart& chart) {
  const auto faint = std::count_if(chart.series.begin(), chart.series.end(),
                                   [](const Series& series) { return series.faint; });
  return chart.series.size() - as_size(faint) + chart.horizontal.size();
}

double widest_name(const Chart& chart) {
  double widest = 0;
  for (const Series& series : chart.series) {
    if (series.faint) continue;
    widest = std::max(widest, 14 + text_width(series.name, name_size));
  }
  for (const ReferenceLine& line : chart.horizontal) {
    widest = std::max(widest, text_width(line.label, name_size));
  }
  return widest;
}

}  // namespace stageline::report
