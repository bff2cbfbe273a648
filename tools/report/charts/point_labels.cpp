// Places the labels of points.
#include <algorithm>
#include <array>
#include <cmath>

#include "tools/report/charts/layout.hpp"

namespace stageline::report {
namespace {

constexpr double beside_point = 7;  // px, from a point to its label
constexpr double above_point = 6;   // px, from a point up to the base line
constexpr double below_point = 15;  // px, from a point down to the base line
constexpr double label_step = 12;   // px, between places ever further away
constexpr int label_steps = 7;
constexpr double clear = 4;  // px, around a point that no label covers

struct LabelledPoint {
  const ChartPoint* point;
  ChartPlace at;
};

struct LabelBox {
  double left = 0;
  double right = 0;
  double base = 0;

  double top() const { return base - 0.8 * tick_size; }
  double bottom() const { return base + 0.2 * tick_size; }
};

std::vector<LabelledPoint> labelled_points(const Chart& chart, const ChartLayout& layout) {
  std::vector<LabelledPoint> labelled;
  for (const Series& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (point.y && !point.label.empty()) labelled.push_back({&point, layout.of(point)});
    }
  }
  std::stable_sort(labelled.begin(), labelled.end(),
                   [](const LabelledPoint& a, const LabelledPoint& b) {
                     return a.point->label.size() > b.point->label.size();
                   });
  return labelled;
}

class LabelPlaces {
 public:
  LabelPlaces(const ChartLayout& layout, const std::vector<LabelledPoint>& points)
      : layout_(layout), points_(points) {}

  std::string place(const LabelledPoint& one) {
    const double width = text_width(one.point->label, tick_size);
    for (int step = 0; step < label_steps; ++step) {
      const double further = step * label_step;
      for (const double base :
           std::array{one.at.y - above_point - further, one.at.y + below_point + further}) {
        for (const bool right : {true, false}) {
          const double left = right ? one.at.x + beside_point : one.at.x - beside_point - width;
          const LabelBox box{left, left + width, base};
          if (!is_free(box)) continue;
          taken_.push_back(box);
          return drawn(one, box, right, step > 0);
        }
      }
    }
    return "";
  }

 private:
  bool is_free(const LabelBox& box) const {
    const Plot& plot = layout_.plot;
    if (box.left < plot.left || box.right > plot.right || box.top() < plot.top - tick_size ||
        box.bottom() > plot.bottom) {
      return false;
    }
    const bool on_label = std::any_of(taken_.begin(), taken_.end(), [&](const LabelBox& other) {
      return box.left < other.right && other.left < box.right &&
             std::abs(box.base - other.base) < tick_size;
    });
    const bool on_point =
        std::any_of(points_.begin(), points_.end(), [&](const LabelledPoint& other) {
          return other.at.x > box.left - clear && other.at.x < box.right + clear &&
                 other.at.y > box.top() - clear && other.at.y < box.bottom() + clear;
        });
    return !on_label && !on_point;
  }

  static std::string drawn(const LabelledPoint& one, const LabelBox& box, bool right, bool far) {
    const std::string bold = one.point->marked ? " h" : "";
    const double edge = right ? box.left : box.right;
    std::string out;
    if (far) out = line_at(one.at.x, one.at.y, edge, box.base - 4, "lead");
    return out + text_at(edge, box.base, (right ? "t" : "t r") + bold, tick_size, one.point->label);
  }

  const ChartLayout& layout_;
  const std::vector<LabelledPoint>& points_;
  std::vector<LabelBox> taken_;
};

}  // namespace

std::string point_labels(const Chart& chart, const ChartLayout& layout) {
  const std::vector<LabelledPoint> points = labelled_points(chart, layout);
  LabelPlaces places(layout, points);
  std::string out;
  for (const LabelledPoint& one : points) out += places.place(one);
  return out;
}

}  // namespace stageline::report
