// Draws predicted over measured step times.
#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "tools/published/report.hpp"
#include "tools/report/charts/chart.hpp"

namespace stageline {
namespace {

constexpr double off_by = 0.10;

report::Series line_of(const std::string& name, double factor, double low, double high,
                       std::size_t ink) {
  return {name, report::SeriesStyle::dashed, {{low, factor * low}, {high, factor * high}}, ink};
}

}  // namespace

std::string published_svg(const std::vector<JudgedPoint>& judged,
                          const report::SvgOptions& options) {
  report::Chart chart;
  chart.title = "Predicted against measured step time";
  chart.x = {"measured", "s", true, false, {}, {}};
  chart.y = {"predicted", "s", true, false, {}, {}};
  double low = 0;
  double high = 0;
  int points = 0;
  bool hollow = false;
  for (const JudgedPoint& row : judged) {
    if (!row.step_deviation) continue;
    const double measured = *row.measured_step;
    const double step = row.prediction->step;
    if (!(step > 0)) continue;
    auto series =
        std::find_if(chart.series.begin(), chart.series.end(),
                     [&](const report::Series& other) { return other.name == row.point.source; });
    if (series == chart.series.end()) {
      series = chart.series.insert(series, {row.point.source, report::SeriesStyle::points, {}});
    }
    series->points.push_back({measured, step, row.role != PointRole::judged});
    hollow = hollow || row.role != PointRole::judged;
    low = points == 0 ? std::min(measured, step) : std::min({low, measured, step});
    high = std::max({high, measured, step});
    ++points;
  }
  if (points == 0) {
    throw UsageError(
        "no row has both a measured and a predicted step time, so there is nothing "
        "to draw");
  }
  chart.subtitle = fmt::format("{} rows of {} published sources. On the line both are equal.",
                               points, chart.series.size());
  low *= 0.9;
  high *= 1.1;
  const std::size_t ink = chart.series.size();
  chart.series.push_back(line_of("predicted = measured", 1, low, high, ink));
  chart.series.push_back(line_of("+10 %", 1 + off_by, low, high, ink + 1));
  chart.series.push_back(line_of("-10 %", 1 - off_by, low, high, ink + 1));
  if (hollow) {
    chart.footnotes.emplace_back(
        "Hollow: a constant was fitted to the row, or the row is offered for calibration.");
  }
  return report::chart_svg(chart, options);
}

}  // namespace stageline
