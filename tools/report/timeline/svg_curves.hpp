// Curves of memory over time, which the panels of memory share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "tools/report/timeline/svg_page.hpp"

namespace stageline::report {

inline constexpr double most_columns = 20'000;  // over all curves: keeps the document under 2 MB
inline constexpr double show_limit = 1.6;  // of the peak; a higher limit would flatten the curves

/// Keeps at most two points per column of `column` px: the highest, and the last, which persists.
std::vector<MemoryPoint> thinned(const std::vector<MemoryPoint>& curve, const TimeScale& scale,
                                 double column);

/// The vertical scale of a panel: y of an amount.
struct CurvePanel {
  double bottom = 0;  // px
  double height = 0;  // px
  Bytes top{};        // amount at the upper edge, > 0

  double y(Bytes amount) const {
    return bottom - height * static_cast<double>(amount.count) / static_cast<double>(top.count);
  }
};

/// The path "M..H..V.." along the step function until the end of time. `value`: of a MemoryPoint.
template <class Value>
std::string steps(const std::vector<MemoryPoint>& curve, const Frame& frame,
                  const CurvePanel& panel, Value value) {
  std::string out;
  std::string last;
  for (const MemoryPoint& point : curve) {
    const std::string x = svg_number(frame.scale.x(point.at));
    const std::string y = svg_number(panel.y(value(point)));
    if (y == last) continue;
    out += out.empty() ? fmt::format("M{} {}", x, y) : fmt::format("H{}V{}", x, y);
    last = y;
  }
  return out + "H" + svg_number(frame.right);
}

/// Lines at round amounts with their labels, at most `intervals` + 1 of them.
std::string amounts(const Frame& frame, const CurvePanel& panel, int intervals);

/// The mark of a peak.
std::string dot(double x, double y);

std::optional<Bytes> limit_of(const Drawing& drawing, std::size_t device);

/// What the panels of memory draw: the devices, or the hosts as if they were devices. Curves and
/// peaks are those within the window.
Drawing devices_of(const Drawing& drawing, const TimeScale& scale);
Drawing hosts_of(const Drawing& drawing, const TimeScale& scale);

/// Those that ever hold anything.
std::vector<std::size_t> devices_with_curves(const Drawing& drawing);

}  // namespace stageline::report
