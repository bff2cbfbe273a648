#include "tools/planner/front.hpp"

#include <algorithm>
#include <tuple>

namespace stageline {
namespace {

struct Axes {
  Time step{};
  Bytes fullest{};
  int devices = 0;

  friend bool operator==(const Axes&, const Axes&) = default;
  // Durations have no <=> in every library.
  friend bool operator<(const Axes& a, const Axes& b) {
    return std::tie(a.step, a.fullest, a.devices) < std::tie(b.step, b.fullest, b.devices);
  }
  bool no_worse_than(const Axes& other) const {
    return step <= other.step && fullest <= other.fullest && devices <= other.devices;
  }
};

Axes axes_of(const FrontPoint& point) {
  return {point.verdict.step, point.verdict.fullest(), point.devices()};
}

}  // namespace

bool Front::insert(FrontPoint point) {
  const Axes axes = axes_of(point);
  for (FrontPoint& other : points_) {
    const Axes there = axes_of(other);
    if (there == axes) {
      if (point.flags >= other.flags) return false;
      other = std::move(point);
      return true;
    }
    if (there.no_worse_than(axes)) return false;
  }
  points_.erase(
      std::remove_if(points_.begin(), points_.end(),
                     [&](const FrontPoint& other) { return axes.no_worse_than(axes_of(other)); }),
      points_.end());
  const auto place = std::lower_bound(
      points_.begin(), points_.end(), axes,
      [](const FrontPoint& other, const Axes& here) { return axes_of(other) < here; });
  points_.insert(place, std::move(point));
  return true;
}

bool Front::dominates(Time step, Bytes fullest, int devices) const {
  const Axes axes{step, fullest, devices};
  return std::any_of(points_.begin(), points_.end(), [&](const FrontPoint& point) {
    const Axes there = axes_of(point);
    return there.no_worse_than(axes) && there != axes;
  });
}

}  // namespace stageline
