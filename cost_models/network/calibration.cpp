// Fits α and β to measured times: two parameters, so the normal equations are solved by hand.
#include "cost_models/network/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/bus_bandwidth.hpp"

namespace stageline {
namespace {

// A time in seconds, and the seconds per (byte a second of bus bandwidth): f·S.
struct Sample {
  double moved = 0;
  double seconds = 0;
};

struct Law {
  double log_alpha = 0;
  double log_slope = 0;  // of the seconds a byte

  double seconds(double moved) const { return std::exp(log_alpha) + std::exp(log_slope) * moved; }
};

double squares(const Law& law, const std::vector<Sample>& samples) {
  double sum = 0;
  for (const Sample& sample : samples) {
    const double off = std::log(law.seconds(sample.moved) / sample.seconds);
    sum += off * off;
  }
  return sum;
}

// One damped step of Gauss-Newton.
Law step(const Law& law, const std::vector<Sample>& samples, double damping) {
  double aa = 0;
  double ab = 0;
  double bb = 0;
  double ar = 0;
  double br = 0;
  for (const Sample& sample : samples) {
    const double seconds = law.seconds(sample.moved);
    const double by_alpha = std::exp(law.log_alpha) / seconds;
    const double by_slope = 1 - by_alpha;
    const double off = std::log(seconds / sample.seconds);
    aa += by_alpha * by_alpha;
    ab += by_alpha * by_slope;
    bb += by_slope * by_slope;
    ar += by_alpha * off;
    br += by_slope * off;
  }
  aa += damping * (aa + 1e-12);
  bb += damping * (bb + 1e-12);
  const double determinant = aa * bb - ab * ab;
  if (!(determinant > 0)) return law;
  return {law.log_alpha - (bb * ar - ab * br) / determinant,
          law.log_slope - (aa * br - ab * ar) / determinant};
}

Law least_squares(const std::vector<Sample>& samples) {
  double alpha = samples.front().seconds;
  double slope = samples.front().seconds / samples.front().moved;
  for (const Sample& sample : samples) {
    alpha = std::min(alpha, sample.seconds);
    slope = std::min(slope, sample.seconds / sample.moved);
  }
  Law law{std::log(alpha), std::log(slope)};
  double off = squares(law, samples);
  double damping = 1e-3;
  for (int round = 0; round < 200 && damping < 1e12; ++round) {
    const Law tried = step(law, samples, damping);
    const double tried_off = squares(tried, samples);
    if (!(tried_off < off)) {
      damping *= 4;
      continue;
    }
    const bool done = off - tried_off < 1e-15 * off;
    law = tried;
    off = tried_off;
    damping = std::max(damping / 10, 1e-9);
    if (done) break;
  }
  return law;
}

}  // namespace

AlphaBeta fit_alpha_beta(CollectiveKind kind, int ranks, std::span<const TimedSize> times) {
  std::vector<Sample> samples;
  Bytes least = times.empty() ? Bytes{} : times.front().bytes;
  Bytes most = least;
  for (const TimedSize& one : times) {
    if (one.bytes.count <= 0 || one.time <= Time{}) {
      throw UsageError(fmt::format("{} took {}: a fit needs sizes and times above 0",
                                   print(one.bytes), print(one.time)));
    }
    least = std::min(least, one.bytes);
    most = std::max(most, one.bytes);
    samples.push_back(
        {bus_factor(kind, ranks) * static_cast<double>(one.bytes.count), to_seconds(one.time)});
  }
  if (least == most) {
    throw UsageError(fmt::format(
        "latency and bandwidth of {} among {} ranks need times of at least two sizes, and there {}",
        name(kind), ranks, samples.empty() ? "is none" : fmt::format("is only {}", print(least))));
  }
  const Law law = least_squares(samples);
  const double largest =
      std::exp(law.log_slope) * bus_factor(kind, ranks) * static_cast<double>(most.count);
  if (largest < 0.01 * std::exp(law.log_alpha)) {
    throw UsageError(fmt::format(
        "the times of {} among {} ranks do not grow from {} to {}, so they say nothing about the "
        "bandwidth; measure larger sizes (nccl-tests: -e 1G)",
        name(kind), ranks, print(least), print(most)));
  }
  AlphaBeta fit;
  fit.alpha = from_seconds(std::exp(law.log_alpha));
  fit.bandwidth = Bandwidth{std::llround(std::exp(-law.log_slope))};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double error = std::abs(law.seconds(samples[i].moved) / samples[i].seconds - 1);
    fit.mean_error += error / static_cast<double>(samples.size());
    if (error <= fit.worst_error) continue;
    fit.worst_error = error;
    fit.worst = times[i].bytes;
  }
  return fit;
}

}  // namespace stageline
