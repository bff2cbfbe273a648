// Chooses the series of a crowded chart that have colours.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "tools/report/charts/axis.hpp"
#include "tools/report/charts/chart.hpp"

namespace stageline::report {
namespace {

// The greatest x at which any series has a value; chart.hpp: charts have a point.
double last_x(const Chart& chart) {
  double last = std::numeric_limits<double>::lowest();
  for (const Series& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (point.y) last = std::max(last, point.x);
    }
  }
  return last;
}

// Series without a value at `x` come after all others.
double value_at(const Series& series, double x) {
  double value = std::numeric_limits<double>::lowest();
  for (const ChartPoint& point : series.points) {
    if (point.y && point.x >= x) value = std::max(value, *point.y);
  }
  return value;
}

}  // namespace

void highlight_best(Chart& chart, std::size_t most) {
  if (chart.series.size() <= most + 2) return;
  const double x = last_x(chart);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < chart.series.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return value_at(chart.series[a], x) > value_at(chart.series[b], x);
  });
  std::vector<std::string> grey;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    Series& series = chart.series[order[rank]];
    series.faint = rank >= most;
    if (series.faint) {
      grey.push_back(series.name);
    } else {
      series.ink = rank;
    }
  }
  chart.footnotes.push_back(
      fmt::format("Coloured: the {} highest at {} {}. Grey, from the highest: {}.", most,
                  value_text(x), chart.x.label, fmt::join(grey, ", ")));
}

}  // namespace stageline::report
