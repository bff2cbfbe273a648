// Is the front the same in any order of insertion, and does it end where it is asked to?
#include "tools/planner/front.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace stageline::front_tests {
namespace {

struct Point {
  int step = 0;
  int memory = 0;
  int devices = 1;

  friend bool operator==(const Point&, const Point&) = default;
};

planner::FrontPoint point_of(const Point& point) {
  planner::FrontPoint made;
  made.candidate.shape.degrees.pipeline = point.devices;
  made.verdict.step = Time{point.step};
  made.verdict.peak = {Bytes{point.memory}};
  made.flags = std::to_string(point.step) + " " + std::to_string(point.memory);
  return made;
}

std::vector<Point> points_of(const planner::Front& front) {
  std::vector<Point> points;
  for (const planner::FrontPoint& point : front.points()) {
    points.push_back({static_cast<int>(point.verdict.step.count()),
                      static_cast<int>(point.verdict.fullest().count), point.devices()});
  }
  return points;
}

planner::Front front_of(const std::vector<Point>& points, std::optional<double> slower_by) {
  planner::Front front(slower_by);
  for (const Point& point : points) front.insert(point_of(point));
  return front;
}

bool no_worse(const Point& a, const Point& b) {
  return a.step <= b.step && a.memory <= b.memory && a.devices <= b.devices;
}

TEST_CASE("the front is what nothing dominates and nothing is so much faster than") {
  std::mt19937 random(11);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Point> points;
    for (int i = 0; i < 30; ++i) {
      const Point point{20 + static_cast<int>(random() % 60), 1 + static_cast<int>(random() % 40),
                        1 << random() % 3};
      if (std::count(points.begin(), points.end(), point) == 0) points.push_back(point);
    }
    for (const std::optional<double> slower_by : {std::optional<double>{}, {0.0}, {0.5}}) {
      std::vector<Point> expected;
      for (const Point& point : points) {
        const bool kept = std::none_of(points.begin(), points.end(), [&](const Point& other) {
          const bool much_faster = slower_by && other.devices <= point.devices &&
                                   point.step > other.step * (1 + *slower_by);
          return (!(other == point) && no_worse(other, point)) || much_faster;
        });
        if (kept) expected.push_back(point);
      }
      std::shuffle(points.begin(), points.end(), random);
      const planner::Front front = front_of(points, slower_by);
      std::vector<Point> found = points_of(front);
      CHECK(std::is_sorted(found.begin(), found.end(),
                           [](const Point& a, const Point& b) { return a.step < b.step; }));
      const auto before = [](const Point& a, const Point& b) {
        return std::tie(a.step, a.memory, a.devices) < std::tie(b.step, b.memory, b.devices);
      };
      std::sort(found.begin(), found.end(), before);
      std::sort(expected.begin(), expected.end(), before);
      CHECK(found == expected);
    }
  }
}

TEST_CASE("what a point has to beat is the fastest with no more memory, or the end of the front") {
  const planner::Front front = front_of({{100, 40, 4}, {120, 20, 4}}, 0.5);
  CHECK(front.to_beat(50, 4) == doctest::Approx(100e-12));
  CHECK(front.to_beat(30, 8) == doctest::Approx(120e-12));
  CHECK(front.to_beat(10, 4) == doctest::Approx(150e-12));
  CHECK_FALSE(front.to_beat(50, 2).has_value());
  CHECK(front.ends_before(Time{151}, 4));
  CHECK_FALSE(front.ends_before(Time{150}, 4));
  CHECK_FALSE(front.ends_before(Time{1000}, 2));
  CHECK_FALSE(front_of({{100, 40, 4}}, {}).ends_before(Time{1000}, 4));
}

}  // namespace
}  // namespace stageline::front_tests
