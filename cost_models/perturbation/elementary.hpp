// exp and log of the draws. Those of the C library have versions for processors with and without
// fused multiply-add, which differ in the last bit; these are the same bits on every machine, as
// long as the compiler contracts nothing (cost_models/meson.build).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "sim/base/bits.hpp"

namespace stageline {
namespace elementary {

// ln 2 in two parts, of which the first times a whole number below 2²⁰ is exact.
inline constexpr double ln2_high = 6.93147180369123816490e-01;
inline constexpr double ln2_low = 1.90821492927058770002e-10;

inline constexpr std::array<double, 15> inverse_factorials = [] {
  std::array<double, 15> all{1};
  double factorial = 1;  // up to 14! exact
  for (std::size_t n = 1; n < all.size(); ++n) {
    factorial *= static_cast<double>(n);
    all[n] = 1 / factorial;
  }
  return all;
}();

// 2 atanh(s) = ln((1 + s) / (1 − s)), |s| ≤ 0.172.
inline double twice_atanh(double s) {
  const double square = s * s;
  double sum = 1.0 / 23;
  for (int odd = 21; odd >= 1; odd -= 2) sum = sum * square + 1.0 / odd;
  return 2 * s * sum;
}

}  // namespace elementary

/// eˣ within 4 units in the last place, |x| ≤ 700. Without branches and calls: loops over it become
/// vector code.
inline double portable_exp(double x) {
  constexpr double log2_e = 1.44269504088896338700;
  constexpr double shift = 0x1.8p52;  // whole numbers are the last bits of what is near it
  const double shifted = x * log2_e + shift;
  const double whole = shifted - shift;
  const double rest = (x - whole * elementary::ln2_high) - whole * elementary::ln2_low;
  double sum = elementary::inverse_factorials.back();
  for (std::size_t n = elementary::inverse_factorials.size() - 1; n-- > 0;) {
    sum = sum * rest + elementary::inverse_factorials[n];
  }
  const std::uint64_t doublings =
      same_bits<std::uint64_t>(shifted) - same_bits<std::uint64_t>(shift);
  return same_bits<double>(same_bits<std::uint64_t>(sum) + (doublings << 52U));
}

/// ln x within 4 units in the last place, x > 0 and normal.
inline double portable_log(double x) {
  constexpr double half_root = 0.70710678118654752440;
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < half_root) {
    mantissa *= 2;
    --exponent;
  }
  const double log = elementary::twice_atanh((mantissa - 1) / (mantissa + 1));
  return exponent * elementary::ln2_high + (exponent * elementary::ln2_low + log);
}

/// ln(1 + y) within 4 units in the last place, y ≥ 0.
inline double portable_log1p(double y) {
  return y < 0.4 ? elementary::twice_atanh(y / (2 + y)) : portable_log(1 + y);
}

}  // namespace stageline
