// Fits α and β to measured times: two parameters, so the normal equations are solved by hand.
#include "cost_models/network/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
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

namespace {

struct Chord {
  double alpha = 0;  // seconds
  double slope = 0;  // seconds a byte

  double seconds(double bytes) const { return alpha + slope * bytes; }
};

struct Knot {
  double bytes = 0;
  double seconds = 0;  // the geometric mean of the times of this size
};

// Empty where the line falls, or would take less than nothing at size 0.
std::optional<Chord> chord_of(const Knot& from, const Knot& to) {
  const double slope = (to.seconds - from.seconds) / (to.bytes - from.bytes);
  const double alpha = from.seconds - slope * from.bytes;
  if (!(slope > 0) || !(alpha >= 0)) return std::nullopt;
  return Chord{alpha, slope};
}

std::vector<Knot> knots_of(std::span<const TimedSize> times) {
  std::map<std::int64_t, std::pair<double, int>> logarithms;  // by size: their sum and number
  for (const TimedSize& one : times) {
    auto& [sum, count] = logarithms[one.bytes.count];
    sum += std::log(to_seconds(one.time));
    ++count;
  }
  std::vector<Knot> knots;
  for (const auto& [bytes, logs] : logarithms) {
    knots.push_back({static_cast<double>(bytes), std::exp(logs.first / logs.second)});
  }
  return knots;
}

// The end of the longest line from a knot that is near all between; else of the nearest line.
std::optional<std::size_t> end_of_line(const std::vector<Knot>& knots, std::size_t from,
                                       double line_error) {
  std::optional<std::size_t> best;
  double least = 0;
  for (std::size_t to = from + 1; to < knots.size(); ++to) {
    const std::optional<Chord> chord = chord_of(knots[from], knots[to]);
    if (!chord) continue;
    double worst = 0;
    for (std::size_t at = from + 1; at < to; ++at) {
      worst = std::max(worst, std::abs(chord->seconds(knots[at].bytes) / knots[at].seconds - 1));
    }
    if (best && worst > line_error && worst >= least) continue;
    best = to;
    least = std::max(worst, line_error);
  }
  return best;
}

}  // namespace

MeasuredLines fit_lines(CollectiveKind kind, int ranks, std::span<const TimedSize> times,
                        double law_error, double line_error) {
  const AlphaBeta law = fit_alpha_beta(kind, ranks, times);
  MeasuredLines result{
      {{Bytes{}, law.alpha, law.bandwidth}}, law.mean_error, law.worst_error, law.worst};
  if (law.worst_error <= law_error) return result;
  const std::vector<Knot> knots = knots_of(times);
  std::vector<Chord> chords;
  std::vector<MeasuredLines::Line> lines;
  for (std::size_t from = 0; from + 1 < knots.size();) {
    const std::optional<std::size_t> to = end_of_line(knots, from, line_error);
    if (!to) break;  // the last line goes on
    const Chord chord = *chord_of(knots[from], knots[*to]);
    const double bus = bus_factor(kind, ranks) / chord.slope;
    lines.push_back({Bytes{chords.empty() ? 0 : std::llround(knots[from].bytes)},
                     from_seconds(chord.alpha), Bandwidth{std::llround(bus)}});
    chords.push_back(chord);
    from = *to;
  }
  if (lines.empty()) return result;
  MeasuredLines found{std::move(lines), 0, 0, Bytes{}};
  for (const TimedSize& one : times) {
    const auto bytes = static_cast<double>(one.bytes.count);
    std::size_t at = 0;
    while (at + 1 < chords.size() && found.lines[at + 1].from <= one.bytes) ++at;
    const double error = std::abs(chords[at].seconds(bytes) / to_seconds(one.time) - 1);
    found.mean_error += error / static_cast<double>(times.size());
    if (error <= found.worst_error) continue;
    found.worst_error = error;
    found.worst = one.bytes;
  }
  return found.worst_error < law.worst_error ? found : result;
}

}  // namespace stageline
