// Positions of a chart's curves and their names, in px.
#pragma once

#include <string>
#include <vector>

#include "tools/report/charts/page.hpp"

namespace stageline::report {

inline constexpr double tick_size = 11;    // px, of numbers
inline constexpr double name_size = 12;    // px, of names
inline constexpr double name_gap = 15;     // px, between names
inline constexpr double inset = 10;        // px, of the first and the last x from the plot's edges
inline constexpr double lead_length = 16;  // px, from the plot to the names

struct ChartPlace {
  double x = 0;  // px
  double y = 0;
};

struct ChartLayout {
  Plot plot;
  ValueScale x;
  ValueScale y;
  bool names_beside = true;

  double px(double value) const {
    return plot.left + inset + x.share(value) * (plot.right - plot.left - 2 * inset);
  }
  double py(double value) const { return plot.bottom - y.share(value) * (plot.bottom - plot.top); }
  ChartPlace of(const ChartPoint& point) const { return {px(point.x), py(*point.y)}; }
};

/// The number of a series' colour and marker.
inline std::size_t ink_of(const Chart& chart, std::size_t series) {
  return chart.series[series].ink.value_or(series);
}

/// The positions of all points of a series that have a y.
std::vector<ChartPlace> places_of(const Series& series, const ChartLayout& layout);

/// The labels of vertical lines are above the plot, each at the right of its own line and in the
/// lowest row with room. Placed from right to left, so that no line crosses a label below its own.
///   |a long label
///   |       |another
struct NameFlag {
  double x = 0;  // px, of the text
  std::size_t row = 0;
};
std::vector<NameFlag> flags_of(const Chart& chart, const ChartLayout& layout, double width);

/// The labels of points, each at the first of these places where it is within the plot and covers
/// no label and no labelled point: above at the right, above at the left, below at the right, below
/// at the left, then the same further away, with a line to the point. Longer labels choose first;
/// one without a place is left out.
std::string point_labels(const Chart& chart, const ChartLayout& layout);

/// Names of series (other than faint ones) and of horizontal lines at the right of the plot, each
/// as near as possible to the end of its curve; their number, and the width in px that they need.
std::string names_beside(const Chart& chart, const ChartLayout& layout);
std::size_t name_count(const Chart& chart);
double widest_name(const Chart& chart);

/// The same names above the plot, in as many lines as needed.
Fragment names_above(const Chart& chart, double width, double top);

}  // namespace stageline::report
