// Cuts what is known over time to the window of a picture.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline::report {

/// The points of a step function within [from, to]. The last one before `from` still holds there,
/// and is moved to it. `Point` has a member `at`; points are in order of time.
template <class Point>
std::vector<Point> clipped(const std::vector<Point>& points, Time from, Time to) {
  std::vector<Point> inside;
  for (std::size_t i = 0; i < points.size() && points[i].at <= to; ++i) {
    const bool replaced = i + 1 < points.size() && points[i + 1].at <= from;
    if (points[i].at < from && replaced) continue;
    inside.push_back(points[i]);
    inside.back().at = std::max(points[i].at, from);
  }
  return inside;
}

}  // namespace stageline::report
