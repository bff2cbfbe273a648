// Random numbers by position: Philox4x32-10 (Salmon et al. 2011, Parallel Random Numbers: As Easy
// as 1, 2, 3, doi 10.1145/2063384.2063405). The number at a position does not depend on which
// others are drawn, nor in which order.
#pragma once

#include <array>
#include <cstdint>

namespace stageline {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Four words of 32 bits for a counter and a key.
constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t first = 0xD2511F53;
  constexpr std::uint64_t second = 0xCD9E8D57;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = first * counter[0];
    const std::uint64_t b = second * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// In the middle of one of 2³² equal parts of (0, 1).
constexpr double uniform_of(std::uint32_t word) {
  return (static_cast<double>(word) + 0.5) / 4294967296.0;
}

}  // namespace stageline
