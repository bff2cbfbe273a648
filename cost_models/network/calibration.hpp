// α and β of a collective from measured times.
#pragma once

#include <span>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/model.hpp"

namespace stageline {

struct TimedSize {
  Bytes bytes{};  // of the full tensor a rank
  Time time{};
};

struct AlphaBeta {
  Time alpha{};
  Bandwidth bandwidth;    // bus bandwidth, bus_factor() over the seconds a byte
  double mean_error = 0;  // of |fitted / measured − 1|
  double worst_error = 0;
  Bytes worst{};  // the size of the worst error
};

/// The law α + f·S/β of least squares on the logarithms of the times (Levenberg-Marquardt on log α
/// and log β). Throws UsageError for fewer than two sizes, for a time or a size of 0, and where the
/// times do not grow with the sizes, so that they say nothing about the bandwidth.
AlphaBeta fit_alpha_beta(CollectiveKind kind, int ranks, std::span<const TimedSize> times);

/// Lines through measured times, each from one size to the next.
struct MeasuredLines {
  struct Line {
    Bytes from{};  // 0: the first one
    Time alpha{};
    Bandwidth bandwidth;  // of the bus
  };
  std::vector<Line> lines;  // at least one, by size
  double mean_error = 0;    // as of AlphaBeta
  double worst_error = 0;
  Bytes worst{};
};

/// The law of fit_alpha_beta() where it is within `law_error` of all times: a few parameters that
/// the noise of a run does not move. Else lines between measured times, each as long as it stays
/// within `line_error` of those between its ends: where the library changes its protocol with the
/// size, no single law is near. Neighbours meet at a measured size. Throws as fit_alpha_beta().
MeasuredLines fit_lines(CollectiveKind kind, int ranks, std::span<const TimedSize> times,
                        double law_error = 0.1, double line_error = 0.05);

}  // namespace stageline
