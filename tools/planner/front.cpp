#include "tools/planner/front.hpp"

#include <algorithm>
#include <tuple>

namespace stageline::planner {
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

// Among equal points one without a placement of its own goes first, then the one whose flags do.
bool goes_first(const FrontPoint& a, const FrontPoint& b) {
  const bool placed = !a.candidate.shape.placement.empty();
  const bool other_placed = !b.candidate.shape.placement.empty();
  return std::tie(placed, a.flags) < std::tie(other_placed, b.flags);
}

}  // namespace

bool Front::insert(FrontPoint point) {
  const Axes axes = axes_of(point);
  if (ends_before(axes.step, axes.devices)) return false;
  for (FrontPoint& other : points_) {
    const Axes there = axes_of(other);
    if (there == axes) {
      if (!goes_first(point, other)) return false;
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
  points_.erase(std::remove_if(points_.begin(), points_.end(),
                               [&](const FrontPoint& other) {
                                 return ends_before(other.verdict.step, other.devices());
                               }),
                points_.end());
  return true;
}

// The longest step that may be on the front.
std::optional<Time> Front::last(int devices) const {
  if (!slower_by_) return std::nullopt;
  for (const FrontPoint& point : points_) {
    if (point.devices() > devices) continue;
    const double longest = static_cast<double>(point.verdict.step.count()) * (1 + *slower_by_);
    return Time{static_cast<std::int64_t>(std::min(longest, 4e18))};
  }
  return std::nullopt;
}

bool Front::ends_before(Time step, int devices) const {
  const std::optional<Time> longest = last(devices);
  return longest && step > *longest;
}

std::optional<double> Front::to_beat(double fullest, int devices) const {
  for (const FrontPoint& point : points_) {
    if (point.devices() <= devices &&
        static_cast<double>(point.verdict.fullest().count) <= fullest) {
      return to_seconds(point.verdict.step);
    }
  }
  const std::optional<Time> longest = last(devices);
  return longest ? std::optional(to_seconds(*longest)) : std::nullopt;
}

bool Front::dominates(Time step, Bytes fullest, int devices) const {
  const Axes axes{step, fullest, devices};
  return std::any_of(points_.begin(), points_.end(), [&](const FrontPoint& point) {
    const Axes there = axes_of(point);
    return there.no_worse_than(axes) && there != axes;
  });
}

}  // namespace stageline::planner
