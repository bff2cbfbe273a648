// Draws handwritten digits: strokes through jittered points, bent and slanted as a whole, in one of
// several inks, among stray strokes and noise. Uses only + - * / and sqrt, and bytes at the end, so
// that every machine draws the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "sim/base/index.hpp"
#include "tools/lab/datasets/kinds.hpp"

namespace stageline::lab {
namespace {

constexpr int digit_side = 28;

struct Point {
  double x = 0;
  double y = 0;
};
Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point operator*(double factor, Point a) { return {factor * a.x, factor * a.y}; }

// A point between -x and x, and -y and y; the order of the random numbers is part of the format.
Point within(RandomStream& random, double x, double y) {
  const double first = random.between(-x, x);
  const double second = random.between(-y, y);
  return {first, second};
}

enum class Line : std::uint8_t { straight, curve, ring };

struct Stroke {
  Line line;                  // from point to point, or a curve through them, back to the first
  std::vector<Point> points;  // in a box 1 wide and 1 high, y downward
};
using Glyph = std::vector<Stroke>;

// The ways to write each digit.
const std::array<std::vector<Glyph>, 10>& alphabet() {
  constexpr Line straight = Line::straight;
  constexpr Line round = Line::curve;
  constexpr Line ring = Line::ring;
  // clang-format off
  static const std::array<std::vector<Glyph>, 10> glyphs{{
      {{{ring, {{.5, 0}, {.2, .13}, {.08, .5}, {.2, .87}, {.5, 1}, {.8, .87}, {.92, .5}, {.8, .13}}}}},

      {{{straight, {{.5, 0}, {.5, 1}}}},
       {{straight, {{.25, .25}, {.55, 0}, {.55, 1}}}},
       {{straight, {{.25, .25}, {.5, 0}, {.5, 1}}}, {straight, {{.2, 1}, {.8, 1}}}}},

      {{{round, {{.12, .25}, {.3, .03}, {.68, .03}, {.82, .28}, {.55, .62}, {.1, 1}}},
        {straight, {{.1, 1}, {.9, 1}}}},
       {{round, {{.15, .2}, {.45, 0}, {.78, .2}, {.6, .6}, {.25, .95}, {.15, .8}, {.4, .8}, {.9, .97}}}}},

      {{{round, {{.15, .1}, {.5, 0}, {.8, .2}, {.7, .42}, {.38, .48}}},
        {round, {{.38, .48}, {.75, .55}, {.87, .78}, {.55, 1}, {.1, .9}}}},
       {{straight, {{.15, 0}, {.8, 0}, {.42, .4}}},
        {round, {{.42, .4}, {.82, .55}, {.8, .88}, {.42, 1}, {.1, .88}}}}},

      {{{straight, {{.66, 1}, {.66, 0}, {.08, .66}, {.92, .66}}}},
       {{straight, {{.2, 0}, {.14, .56}, {.88, .56}}}, {straight, {{.72, .1}, {.66, 1}}}}},

      {{{straight, {{.82, 0}, {.25, 0}, {.2, .42}}},
        {round, {{.2, .42}, {.55, .36}, {.85, .6}, {.76, .9}, {.4, 1}, {.1, .88}}}}},

      {{{round, {{.75, .03}, {.36, .24}, {.13, .62}, {.25, .93}, {.6, .99}, {.83, .76}, {.65, .52}, {.35, .54}, {.15, .72}}}},
       {{round, {{.5, 0}, {.2, .45}, {.18, .8}, {.45, 1}, {.78, .85}, {.7, .6}, {.4, .58}, {.2, .75}}}}},

      {{{straight, {{.1, 0}, {.9, 0}, {.4, 1}}}},
       {{straight, {{.1, 0}, {.9, 0}, {.4, 1}}}, {straight, {{.3, .5}, {.8, .5}}}},
       {{round, {{.1, .1}, {.45, .04}, {.88, .04}, {.62, .45}, {.45, 1}}}}},

      {{{ring, {{.5, .47}, {.22, .33}, {.22, .1}, {.5, 0}, {.78, .1}, {.78, .33}, {.5, .47}, {.17, .62}, {.17, .88}, {.5, 1}, {.83, .88}, {.83, .62}}}},
       {{ring, {{.5, .47}, {.2, .25}, {.5, 0}, {.8, .25}, {.5, .47}, {.13, .75}, {.5, 1}, {.87, .75}}}}},

      {{{ring, {{.82, .25}, {.55, .02}, {.2, .15}, {.2, .42}, {.55, .52}}},
        {round, {{.82, .25}, {.8, .65}, {.55, 1}}}},
       {{ring, {{.82, .22}, {.5, 0}, {.18, .2}, {.3, .48}, {.62, .46}}},
        {straight, {{.82, .22}, {.76, 1}}}}},
  }};
  // clang-format on
  return glyphs;
}

// Points along the stroke, close enough to be joined by straight segments: for round strokes, on
// the Catmull-Rom curve.
std::vector<Point> traced(Line kind, std::vector<Point> through) {
  if (kind == Line::straight) return through;
  constexpr int pieces = 6;
  const bool closed = kind == Line::ring;
  if (closed) through.push_back(through.front());
  const std::size_t last = through.size() - 1;
  std::vector<Point> line{through.front()};
  for (std::size_t i = 0; i < last; ++i) {
    const Point p0 = i > 0 ? through[i - 1] : closed ? through[last - 1] : through[0];
    const Point p1 = through[i];
    const Point p2 = through[i + 1];
    const Point p3 = i + 1 < last ? through[i + 2] : closed ? through[1] : through[last];
    for (int k = 1; k <= pieces; ++k) {
      const double t = static_cast<double>(k) / pieces;
      const Point a = 2 * p1 + t * (p2 - p0);
      const Point b = (t * t) * (2 * p0 - 5 * p1 + 4 * p2 - p3);
      const Point c = (t * t * t) * (3 * p1 - p0 - 3 * p2 + p3);
      line.push_back(0.5 * (a + b + c));
    }
  }
  return line;
}

// Places a glyph on the image: turned, slanted, stretched, bent, moved.
class Warp {
 public:
  Warp(RandomStream& random, double strength) {
    // cos and sin of an angle whose half has the tangent t: needs no library's sine.
    const double t = strength * random.between(-.16, .16);
    const double cosine = (1 - t * t) / (1 + t * t);
    const double sine = 2 * t / (1 + t * t);
    const double slant = strength * random.between(-.4, .4);
    const double width = 11.5 * (1 + strength * random.between(-.3, .25));
    const double height = 18 * (1 + strength * random.between(-.3, .15));
    across_ = {cosine * width, sine * width};
    down_ = {(-sine - slant * cosine) * height, (cosine - slant * sine) * height};
    middle_ = Point{digit_side / 2., digit_side / 2.} + strength * within(random, 3, 2.5);
    for (Point& bend : bends_) bend = strength * within(random, 2.2, 2.2);
  }

  // From the glyph's box to pixels.
  Point operator()(Point p) const {
    const Point straight = middle_ + (p.x - .5) * across_ + (p.y - .5) * down_;
    // Displaced by the four corners and the middle of each edge: bilinear between 3 × 3 places.
    const double gx = std::clamp(2 * p.x, 0., 1.999);
    const double gy = std::clamp(2 * p.y, 0., 1.999);
    const auto column = static_cast<std::size_t>(gx);
    const auto row = static_cast<std::size_t>(gy);
    const double u = gx - static_cast<double>(column);
    const double v = gy - static_cast<double>(row);
    const auto bend = [&](std::size_t r, std::size_t c) { return bends_[3 * r + c]; };
    return straight + (1 - v) * ((1 - u) * bend(row, column) + u * bend(row, column + 1)) +
           v * ((1 - u) * bend(row + 1, column) + u * bend(row + 1, column + 1));
  }

 private:
  Point across_;
  Point down_;
  Point middle_;
  std::array<Point, 9> bends_;
};

using Plane = std::array<std::array<double, digit_side>, digit_side>;  // ink, from 0 to 1; by row

// Adds ink along the line where there is less yet; soft over one pixel at its edge.
void ink(Plane& plane, const std::vector<Point>& line, double thickness, double darkness) {
  const double reach = thickness / 2 + .5;  // pixels
  const auto clamped = [](double value) {
    return std::clamp(static_cast<int>(value), 0, digit_side - 1);
  };
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    const Point from = line[i];
    const Point along = line[i + 1] - from;
    const double length2 = along.x * along.x + along.y * along.y;
    const Point end = line[i + 1];
    const int left = clamped(std::min(from.x, end.x) - reach - 1);
    const int right = clamped(std::max(from.x, end.x) + reach + 1);
    const int top = clamped(std::min(from.y, end.y) - reach - 1);
    const int bottom = clamped(std::max(from.y, end.y) + reach + 1);
    for (int y = top; y <= bottom; ++y) {
      for (int x = left; x <= right; ++x) {
        const Point to = Point{x + .5, y + .5} - from;
        const double t =
            length2 > 0 ? std::clamp((to.x * along.x + to.y * along.y) / length2, 0., 1.) : 0.;
        const Point off = to - t * along;
        const double distance = std::sqrt(off.x * off.x + off.y * off.y);
        double& here = nth(nth(plane, y), x);
        here = std::max(here, darkness * std::clamp(reach - distance, 0., 1.));
      }
    }
  }
}

// Draws a short stroke that is not part of the digit.
void stray(Plane& plane, RandomStream& random) {
  const Point start =
      Point{digit_side / 2., digit_side / 2.} + within(random, digit_side / 2., digit_side / 2.);
  const Point step = within(random, 6, 6);
  const Point turn = within(random, 4, 4);
  const double thickness = random.between(1, 2.2);
  const double darkness = random.between(.3, .9);
  ink(plane, traced(Line::curve, {start, start + step, start + 2 * step + turn}), thickness,
      darkness);
}

void draw_digit(RandomStream& random, int label, const DataOptions& digit_options,
                std::span<std::uint8_t> image) {
  const double strength = static_cast<double>(digit_options.at("warp")) / 100;
  const auto noise = static_cast<double>(digit_options.at("noise"));  // grey levels
  const std::vector<Glyph>& ways = nth(alphabet(), label);
  const Glyph& glyph = ways[random.below(ways.size())];
  const Warp warp(random, strength);
  const double thickness = random.between(1.4, 3.2);
  const double darkness = random.between(.55, 1);
  Plane plane{};
  for (const Stroke& stroke : glyph) {
    std::vector<Point> points = stroke.points;
    for (Point& point : points) point = warp(point + strength * within(random, .07, .06));
    ink(plane, traced(stroke.line, std::move(points)), thickness, darkness);
  }
  const std::uint64_t strays = random.below(3);
  for (std::uint64_t i = 0; i < strays; ++i) stray(plane, random);
  auto pixel = image.begin();
  for (const auto& row : plane) {
    for (const double here : row) *pixel++ = to_byte(255 * here + noise * random.bell());
  }
}

constexpr std::array<DataOption, 5> digit_options{{
    {"train", 1, 1'000'000, 6000, "training images"},
    {"test", 1, 1'000'000, 1000, "test images"},
    {"noise", 0, 255, 20, "deviation of the noise, in grey levels"},
    {"warp", 0, 200, 100, "how far digits are bent, turned and moved, in percent"},
    {"seed", 0, INT64_MAX, 1, "seed of all random numbers"},
}};

}  // namespace

extern const DataKind digits_data{
    "digits", "digits", "28x28 grey digits, drawn: bent strokes in noise", digit_options,
    [](const std::string&, const DataOptions& values) {
      return drawn_parts({1, digit_side, digit_side, 10, {}, {}}, values, draw_digit);
    }};

}  // namespace stageline::lab
