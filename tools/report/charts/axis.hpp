// Maps values to positions: scales, ticks, and the checks shared by both kinds of chart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/report/charts/chart.hpp"

namespace stageline::report {

/// A number for people: at most four significant digits, no trailing zeros, then the unit.
std::string value_text(double value, std::string_view unit = {});

/// "speed-up, ×"
std::string axis_title(const ChartAxis& axis);

/// Maps [low, high] to [0, 1].
struct ValueScale {
  double low = 0;
  double high = 1;
  bool log = false;

  double share(double value) const;
};

struct Tick {
  double at = 0;
  std::string label;
};

/// 1-2-5 ticks within the scale, at most `intervals` (at least 1) of them and one more; on a log
/// scale 1, 2, 5 a decade or whole decades, or powers of two where `whole`.
std::vector<Tick> ticks(const ValueScale& scale, int intervals, bool whole);

/// The range of an axis, widened if it is a single value; `y`: from 0 to a little above the highest
/// point, up to a tick where one is near.
ValueScale x_scale(const Chart& chart);
ValueScale y_scale(const Chart& chart, int intervals);

/// Positions for labels with the preferred positions `wanted`, in any order: at least `gap` apart,
/// within [top, bottom], in the same order, and with the least sum of squared distances from the
/// preferred ones (isotonic regression by pooling adjacent violators: Barlow et al., Statistical
/// Inference under Order Restrictions, 1972). They must fit.
std::vector<double> spread(const std::vector<double>& wanted, double gap, double top,
                           double bottom);

/// Throw UsageError as documented in chart.hpp.
void check(const Chart& chart);
void check(const Region& region);
void check(const SvgOptions& options);

}  // namespace stageline::report
