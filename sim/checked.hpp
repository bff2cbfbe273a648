// Arithmetic that refuses what 64 bits, or a run, cannot hold.
#pragma once

#include <cstdint>

#include "sim/base/units.hpp"
#include "sim/degrees.hpp"

namespace stageline {

/// Throw UsageError where 64 bits of picoseconds cannot say the result.
Time checked_sum(Time one, Time other);
Time checked_product(Time time, std::int64_t times);

/// So many links of that bandwidth, side by side; unlimited where 64 bits cannot say it. links
/// >= 1.
Bandwidth side_by_side(Bandwidth bandwidth, std::int64_t links);

/// The most devices of a run.
inline constexpr std::int64_t most_ranks = std::int64_t{1} << 20;
/// Throws UsageError where the degrees multiply to more; a pipeline degree that is not known counts
/// 1.
void check_product(const Degrees& degrees);

}  // namespace stageline
