// The standard normal distribution's quantile, and log-normal numbers.
#pragma once

#include <array>
#include <cstdint>

namespace stageline {

/// x with Φ(x) = p, 0 < p < 1, within 1e-15 of the true value's size (Wichura 1988, algorithm AS
/// 241, PPND16, doi 10.2307/2347330).
double normal_quantile(double p);

inline constexpr std::size_t factor_block = 16;

/// Sets, at each word's place, its log-normal number of mean 1: exp(deviation · x − deviation²/2),
/// x the quantile at uniform_of(word).
void log_normal_factors(const std::array<std::uint32_t, factor_block>& words, double deviation,
                        std::array<double, factor_block>& factors);

}  // namespace stageline
