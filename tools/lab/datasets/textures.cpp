// Ten kinds of surface that differ only in their statistics: colours, phases, directions, sizes and
// contrast are drawn anew for each image, from the same ranges for all. Each is a height from 0 to
// 1 at every point of the plane. Mirroring does not change the class. Uses only + - * / and sqrt,
// and bytes at the end, so that every machine draws the same.
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/index.hpp"
#include "tools/lab/datasets/kinds.hpp"

namespace stageline::lab {
namespace {

constexpr int texture_side = 32;

// A wave of period 1 made of parabolas, which approximate a sine: from 0 to 1.
double wave(double x) {
  const double u = x - std::floor(x);
  return u < .5 ? .5 + 8 * u * (.5 - u) : .5 - 8 * (u - .5) * (1 - u);
}

double smooth_step(double t) { return t * t * (3 - 2 * t); }

// 0 outside of the disc, 1 inside, soft at the edge; sizes in cells.
double disc(double dx, double dy, double radius) {
  const double distance = std::sqrt(dx * dx + dy * dy);
  return smooth_step(std::clamp((radius - distance) / .2 + .5, 0., 1.));
}

// Random values at the points of an infinite grid.
class Lattice {
 public:
  explicit Lattice(RandomStream& random) : key_(random.next()) {}

  RandomStream at(double column, double row) const {
    return RandomStream{key_, static_cast<std::uint64_t>(static_cast<std::int64_t>(column)),
                        static_cast<std::uint64_t>(static_cast<std::int64_t>(row))};
  }

  // Interpolated smoothly between the points, which are 1 apart; from 0 to 1.
  double smooth(double x, double y) const {
    const double column = std::floor(x);
    const double row = std::floor(y);
    const double u = smooth_step(x - column);
    const double v = smooth_step(y - row);
    const auto value = [&](int right, int down) { return at(column + right, row + down).unit(); };
    const double upper = (1 - u) * value(0, 0) + u * value(1, 0);
    const double lower = (1 - u) * value(0, 1) + u * value(1, 1);
    return (1 - v) * upper + v * lower;
  }

 private:
  std::uint64_t key_;
};

enum class Surface : std::uint8_t {
  stripes,  // straight
  waves,    // winding stripes
  weave,    // the mean of stripes in both directions
  checks,   // light where stripes in both directions agree
  lattice,  // discs in rows
  spots,    // as many discs, at random places
  cells,    // dark borders between random centres
  blobs,    // smooth noise of one size
  clouds,   // noise of several sizes
  veins,    // where smooth noise is near its middle
};

// One surface, at a random place on its plane.
class Texture {
 public:
  Texture(RandomStream& random, Surface surface, double warp)
      : surface_(surface), noise_(random), bending_(random) {
    // A direction without a sine: a point of the unit circle from the tangent of its half angle.
    const double t = random.between(-.3, .3);
    across_ = (1 - t * t) / (1 + t * t);
    down_ = 2 * t / (1 + t * t);
    period_ = random.between(4.5, 7.5);  // pixels
    phase_x_ = random.between(0, 64);
    phase_y_ = random.between(0, 64);
    fill_ = random.between(.28, .42);
    bend_ = warp * random.between(0, .35);  // of a period
    squeeze_ = random.between(.8, 1.25);
  }

  double operator()(double x, double y) const {
    double p = (across_ * x + down_ * y) / period_ + phase_x_;
    double q = (across_ * y - down_ * x) / (period_ * squeeze_) + phase_y_;
    const double reach = surface_ == Surface::waves ? 1.3 : bend_;
    const double at_p = p;
    p += reach * (bending_.smooth(.45 * p, .45 * q) - .5);
    q += reach * (bending_.smooth(.45 * at_p + 500, .45 * q) - .5);
    return height(p, q);
  }

 private:
  double height(double p, double q) const {
    switch (surface_) {
      case Surface::stripes:
      case Surface::waves:
        return wave(p);
      case Surface::weave:
        return (wave(p) + wave(q)) / 2;
      case Surface::checks:
        return .5 + 2 * (wave(p / 1.4) - .5) * (wave(q / 1.4) - .5);
      case Surface::lattice:
        return disc(p - std::floor(p) - .5, q - std::floor(q) - .5, fill_);
      case Surface::spots:
        return spots(p, q);
      case Surface::cells:
        return cells(p, q);
      case Surface::blobs:
        return std::clamp(1.6 * (noise_.smooth(1.5 * p, 1.5 * q) - .5) + .5, 0., 1.);
      case Surface::clouds:
        return std::clamp(.8 * noise_.smooth(.8 * p, .8 * q) +
                              .5 * noise_.smooth(1.9 * p, 1.9 * q) +
                              .4 * noise_.smooth(4.3 * p, 4.3 * q) - .35,
                          0., 1.);
      case Surface::veins:
        return std::clamp(1.1 - 5 * std::abs(noise_.smooth(p, q) - .5), 0., 1.);
    }
    return 0;
  }

  // One disc per cell, at a random place in it.
  double spots(double p, double q) const {
    double most = 0;
    each_near(p, q, [&](double dx, double dy) { most = std::max(most, disc(dx, dy, fill_)); });
    return most;
  }

  // How much farther the second nearest centre is than the nearest.
  double cells(double p, double q) const {
    double nearest = 9;
    double second = 9;
    each_near(p, q, [&](double dx, double dy) {
      const double distance = std::sqrt(dx * dx + dy * dy);
      second = std::min(second, std::max(nearest, distance));
      nearest = std::min(nearest, distance);
    });
    return std::clamp(2.5 * (second - nearest), 0., 1.);
  }

  // Visits the offsets from (p, q) to the centres of the cells around.
  template <class Visit>
  void each_near(double p, double q, Visit visit) const {
    for (int down = -1; down <= 1; ++down) {
      for (int right = -1; right <= 1; ++right) {
        const double column = std::floor(p) + right;
        const double row = std::floor(q) + down;
        RandomStream centre = noise_.at(column, row);
        const double dx = column + centre.unit() - p;
        const double dy = row + centre.unit() - q;
        visit(dx, dy);
      }
    }
  }

  Surface surface_;
  Lattice noise_;
  Lattice bending_;
  double across_ = 0;
  double down_ = 0;
  double period_ = 0;
  double phase_x_ = 0;
  double phase_y_ = 0;
  double fill_ = 0;
  double bend_ = 0;
  double squeeze_ = 0;
};

using Colour = std::array<double, 3>;

// The colours of height 0 and of height 1: around a random middle, with the contrast mostly alike
// in all channels; either may be the lighter one.
std::array<Colour, 2> two_colours(RandomStream& random) {
  const double contrast = random.between(60, 170) * (random.chance(.5) ? 1 : -1);
  std::array<Colour, 2> colours{};
  for (std::size_t c = 0; c < 3; ++c) {
    const double middle = random.between(70, 185);
    const double half = contrast * random.between(.3, 1) / 2;
    colours[0][c] = middle - half;
    colours[1][c] = middle + half;
  }
  return colours;
}

void draw_texture(RandomStream& random, int label, const DataOptions& texture_options,
                  std::span<std::uint8_t> image) {
  const auto noise = static_cast<double>(texture_options.at("noise"));  // grey levels
  const double warp = static_cast<double>(texture_options.at("warp")) / 100;
  const double most_mixed = static_cast<double>(texture_options.at("mix")) / 100;
  const Texture own(random, static_cast<Surface>(label), warp);
  const Texture other(random, static_cast<Surface>(random.below(10)), warp);
  const double mixed = random.between(0, most_mixed);
  const auto [low, high] = two_colours(random);
  const double slope_x =
      random.between(-1.2, 1.2);  // light from one texture_side, grey levels a pixel
  const double slope_y = random.between(-1.2, 1.2);
  for (int y = 0; y < texture_side; ++y) {
    for (int x = 0; x < texture_side; ++x) {
      const double height = (1 - mixed) * own(x, y) + mixed * other(x, y);
      const double light = slope_x * (x - texture_side / 2.) + slope_y * (y - texture_side / 2.);
      for (std::size_t c = 0; c < 3; ++c) {
        image[c * texture_side * texture_side + as_size(texture_side * y + x)] =
            to_byte(low[c] + height * (high[c] - low[c]) + light + noise * random.bell());
      }
    }
  }
}

constexpr std::array<DataOption, 6> texture_options{{
    {"train", 1, 1'000'000, 4000, "training images"},
    {"test", 1, 1'000'000, 1000, "test images"},
    {"noise", 0, 255, 12, "deviation of the noise, in levels of a colour"},
    {"warp", 0, 400, 100, "how far patterns are bent, in percent"},
    {"mix", 0, 100, 35, "the most of another class's pattern that shines through, in percent"},
    {"seed", 0, INT64_MAX, 1, "seed of all random numbers"},
}};

}  // namespace

extern const DataKind textures_data{
    "textures", "textures", "32x32 colour surfaces of ten kinds, drawn", texture_options,
    [](const std::string&, const DataOptions& values) {
      return drawn_parts({3, texture_side, texture_side, 10, {}, {}}, values, draw_texture);
    }};

}  // namespace stageline::lab
