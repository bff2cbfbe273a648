// Computes scales, ticks and label positions.
#include "tools/report/charts/axis.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::report {

std::string value_text(double value, std::string_view unit) {
  std::string text = fmt::format("{:.4g}", value);
  if (text == "-0") text = "0";
  if (!unit.empty()) text += fmt::format("{}{}", unit == "×" ? "" : " ", unit);
  return text;
}

std::string axis_title(const ChartAxis& axis) {
  return axis.unit.empty() ? axis.label : axis.label + ", " + axis.unit;
}

double ValueScale::share(double value) const {
  return log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
}

namespace {

constexpr double tick_rounding = 1e-9;  // of a step: how far a tick may lie outside the scale

std::vector<Tick> linear_ticks(const ValueScale& scale, int intervals, bool whole) {
  const double least = (scale.high - scale.low) / std::max(intervals, 1);
  int exponent = static_cast<int>(std::floor(std::log10(least)));
  double digit = 10;
  for (const double d : {5.0, 2.0, 1.0}) {
    if (d * std::pow(10, exponent) >= least * (1 - tick_rounding)) digit = d;
  }
  if (digit == 10) {
    digit = 1;
    ++exponent;
  }
  if (whole && exponent < 0) {
    digit = 1;
    exponent = 0;
  }
  // Multiples of digit · 10^exponent: never accumulated, so that labels are exact.
  const double step = digit * std::pow(10, exponent);
  const auto first = static_cast<std::int64_t>(std::ceil(scale.low / step - tick_rounding));
  const auto last = static_cast<std::int64_t>(std::floor(scale.high / step + tick_rounding));
  std::vector<Tick> result;
  for (std::int64_t i = first; i <= last; ++i) {
    const double at = static_cast<double>(i) * step;
    const bool plain = exponent >= -4 && std::abs(at) < 1e7;
    result.push_back(
        {at, plain ? fmt::format("{:.{}f}", at, std::max(0, -exponent)) : value_text(at)});
  }
  return result;
}

std::vector<Tick> log_ticks(const ValueScale& scale, int intervals, bool whole) {
  const double base = whole ? 2 : 10;
  const auto power = [&](double value) { return std::log(value) / std::log(base); };
  const int first = static_cast<int>(std::floor(power(scale.low) + tick_rounding));
  const int last = static_cast<int>(std::ceil(power(scale.high) - tick_rounding));
  const auto within = [&](int stride, std::initializer_list<double> digits) {
    std::vector<Tick> result;
    for (int i = first; i <= last; ++i) {
      if (i % stride != 0) continue;
      for (const double digit : digits) {
        const double at = digit * std::pow(base, i);
        const double share = scale.share(at);
        if (share >= -tick_rounding && share <= 1 + tick_rounding)
          result.push_back({at, value_text(at)});
      }
    }
    return result;
  };
  const auto most = as_size(std::max(intervals, 1)) + 1;
  if (!whole) {
    std::vector<Tick> fine = within(1, {1, 2, 5});
    if (fine.size() <= most) return fine;
  }
  for (int stride = 1;; ++stride) {
    std::vector<Tick> result = within(stride, {1});
    if (result.size() <= most) return result;
  }
}

}  // namespace

std::vector<Tick> ticks(const ValueScale& scale, int intervals, bool whole) {
  if (scale.log) {
    std::vector<Tick> result = log_ticks(scale, intervals, whole);
    if (result.size() >= 2) return result;
  }
  return linear_ticks(scale, intervals, whole);
}

namespace {

// The least and the greatest of the values passed to hold().
struct Extent {
  double low = 0;
  double high = 0;
  bool any = false;

  void hold(double value) {
    low = any ? std::min(low, value) : value;
    high = any ? std::max(high, value) : value;
    any = true;
  }
};

ValueScale scale_of(const ChartAxis& axis, Extent extent) {
  if (axis.from) extent.hold(*axis.from);
  if (axis.to) extent.hold(*axis.to);
  ValueScale scale{extent.low, extent.high, axis.log};
  if (scale.low < scale.high) return scale;
  if (scale.log) return {scale.low / 2, scale.high * 2, true};
  const double half = axis.whole || scale.low == 0 ? 0.5 : std::abs(scale.low) / 2;
  return {scale.low - half, scale.high + half, false};
}

}  // namespace

ValueScale x_scale(const Chart& chart) {
  Extent extent;
  for (const Series& series : chart.series) {
    // Points without a y count too: an infeasible case that was requested belongs in the chart.
    for (const ChartPoint& point : series.points) {
      extent.hold(point.x);
      if (!point.x_range) continue;
      extent.hold(point.x_range->low);
      extent.hold(point.x_range->high);
    }
  }
  for (const ReferenceLine& line : chart.vertical) extent.hold(line.at);
  return scale_of(chart.x, extent);
}

ValueScale y_scale(const Chart& chart, int intervals) {
  Extent extent;
  for (const Series& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (point.y) extent.hold(*point.y);
      if (!point.y_range) continue;
      extent.hold(point.y_range->low);
      extent.hold(point.y_range->high);
    }
  }
  for (const ReferenceLine& line : chart.horizontal) extent.hold(line.at);
  if (!chart.y.log && !chart.y.from && extent.low >= 0 && extent.high > 0) extent.hold(0);
  ValueScale scale = scale_of(chart.y, extent);
  if (scale.log || chart.y.to) return scale;
  const std::vector<Tick> at = ticks(scale, intervals, chart.y.whole);
  if (at.size() < 2 || at.back().at >= scale.high) return scale;
  // Extend to the next tick if that is near, but leave no chart half empty.
  const double step = at[1].at - at[0].at;
  const double over = (scale.high - at.back().at) / step;
  scale.high = over >= 0.5 ? at.back().at + step : scale.high + 0.1 * step;
  return scale;
}

std::vector<double> spread(const std::vector<double>& wanted, double gap, double top,
                           double bottom) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  // With i·gap subtracted, "at least gap apart" becomes "not descending".
  struct Block {
    double sum = 0;
    std::size_t count = 0;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < order.size(); ++i) {
    blocks.push_back({wanted[order[i]] - static_cast<double>(i) * gap, 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().count += last.count;
    }
  }
  const double lowest = bottom - static_cast<double>(wanted.size() - 1) * gap;
  std::vector<double> places(wanted.size());
  std::size_t i = 0;
  for (const Block& block : blocks) {
    for (std::size_t k = 0; k < block.count; ++k, ++i) {
      places[order[i]] =
          std::max(top, std::min(block.mean(), lowest)) + static_cast<double>(i) * gap;
    }
  }
  return places;
}

}  // namespace stageline::report
