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

}  // namespace stageline
