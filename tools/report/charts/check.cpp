// Checks charts and regions before they are drawn.
#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/report/charts/axis.hpp"
#include "tools/report/charts/canvas.hpp"
#include "tools/report/charts/region.hpp"
#include "tools/report/svg/width.hpp"

namespace stageline::report {
namespace {

void check_number(double value, bool log, const std::string& what) {
  if (!std::isfinite(value)) {
    throw UsageError(fmt::format("{} must be a finite number, but is {}", what, value));
  }
  if (log && value <= 0) {
    throw UsageError(
        fmt::format("{} must be above 0 on a logarithmic axis, but is {:g}", what, value));
  }
}

void check_axis(const ChartAxis& axis, const std::string& name) {
  if (axis.from) check_number(*axis.from, axis.log, "the beginning of the " + name + " axis");
  if (axis.to) check_number(*axis.to, axis.log, "the end of the " + name + " axis");
  if (axis.from && axis.to && *axis.from >= *axis.to) {
    throw UsageError(fmt::format("the {} axis must end above its beginning, but goes from {} to {}",
                                 name, value_text(*axis.from), value_text(*axis.to)));
  }
}

}  // namespace

void check(const Chart& chart) {
  check_axis(chart.x, "x");
  check_axis(chart.y, "y");
  if (chart.series.size() > letters) {
    throw UsageError(fmt::format("a chart holds at most {} series, but there are {}; draw fewer",
                                 letters, chart.series.size()));
  }
  std::size_t points = 0;
  std::size_t drawn = 0;
  for (const Series& series : chart.series) {
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const ChartPoint& point = series.points[i];
      const std::string where = fmt::format("of point {} of {}", i, series.name);
      check_number(point.x, chart.x.log, "x " + where);
      if (point.y) check_number(*point.y, chart.y.log, "y " + where);
      for (const auto& [range, log] :
           {std::pair{&point.x_range, chart.x.log}, std::pair{&point.y_range, chart.y.log}}) {
        if (!*range) continue;
        check_number((*range)->low, log, "the low end " + where);
        check_number((*range)->high, log, "the high end " + where);
      }
      ++points;
      drawn += point.y ? 1 : 0;
    }
  }
  for (const ReferenceLine& line : chart.horizontal) {
    check_number(line.at, chart.y.log, "the line " + line.label);
  }
  for (const ReferenceLine& line : chart.vertical) {
    check_number(line.at, chart.x.log, "the line " + line.label);
  }
  if (drawn == 0) {
    throw UsageError(fmt::format(
        "there is nothing to draw: a chart needs a point with a value, but this one has {} series "
        "with {} points, none of which has one",
        chart.series.size(), points));
  }
}

namespace {

void check_ascending(const std::vector<double>& values, const std::string& name) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    check_number(values[i], false, fmt::format("value {} of the {} axis", i, name));
    if (i > 0 && values[i] <= values[i - 1]) {
      throw UsageError(fmt::format("the values of the {} axis must ascend, but {} follows {}", name,
                                   value_text(values[i]), value_text(values[i - 1])));
    }
  }
}

}  // namespace

void check(const Region& region) {
  check_ascending(region.xs, "x");
  check_ascending(region.ys, "y");
  if (region.values.size() != region.ys.size()) {
    throw UsageError(fmt::format("a region needs a row of values for each y: {} rows for {} y",
                                 region.values.size(), region.ys.size()));
  }
  std::size_t drawn = 0;
  for (std::size_t row = 0; row < region.values.size(); ++row) {
    if (region.values[row].size() != region.xs.size()) {
      throw UsageError(fmt::format("a region needs a value for each x: row {} has {} for {} x", row,
                                   region.values[row].size(), region.xs.size()));
    }
    for (std::size_t i = 0; i < region.xs.size(); ++i) {
      const std::optional<double>& value = region.values[row][i];
      if (!value) continue;
      check_number(*value, false, fmt::format("value {} of row {}", i, row));
      ++drawn;
    }
  }
  if (drawn == 0) {
    throw UsageError(
        fmt::format("there is nothing to draw: none of the region's {} × {} cells has a value",
                    region.xs.size(), region.ys.size()));
  }
  if (region.band) {
    check_number(region.band->low, false, "the band's lower end");
    check_number(region.band->high, false, "the band's upper end");
    if (region.band->low > region.band->high) {
      throw UsageError(fmt::format("a band must not end below its beginning: {} to {}",
                                   value_text(region.band->low), value_text(region.band->high)));
    }
  }
  if (region.marks.size() > letters) {
    throw UsageError(fmt::format("a region holds at most {} marks, but there are {}", letters,
                                 region.marks.size()));
  }
  for (const RegionMark& mark : region.marks) {
    check_number(mark.x, false, "x of the mark " + mark.label);
    check_number(mark.y, false, "y of the mark " + mark.label);
    cell_position(region.xs, mark.x);
    cell_position(region.ys, mark.y);
  }
}

void check(const SvgOptions& options) { check_width(options.width); }

}  // namespace stageline::report
