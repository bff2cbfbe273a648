// Reproducible random numbers: the same on every machine and with every compiler, unlike the
// standard library's distributions and std::shuffle. SplitMix64 (Steele, Lea, Flood, OOPSLA 2014,
// doi 10.1145/2660193.2660195): a counter and a mixer, so that a stream starts anywhere at no cost.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace stageline::lab {

constexpr std::uint64_t mixed_bits(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

/// The second word of a key: the purpose of a stream, so that one seed serves all.
namespace purpose {
inline constexpr std::uint64_t train_image = 0;
inline constexpr std::uint64_t test_image = 1;
inline constexpr std::uint64_t order = 2;  // of an epoch
inline constexpr std::uint64_t view = 3;   // of an image
}  // namespace purpose

class RandomStream {
 public:
  /// One stream for each key, such as (seed, purpose, image).
  RandomStream(std::initializer_list<std::uint64_t> key) {
    for (const std::uint64_t word : key) state_ = mixed_bits(state_ + step + word);
  }

  std::uint64_t next() {
    state_ += step;
    return mixed_bits(state_);
  }

  /// Uniform from 0 to below 1: 53 bits.
  double unit() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

  double between(double low, double high) { return low + (high - low) * unit(); }

  /// Uniform from 0 to below `bound`. bound >= 1.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t uneven = (0 - bound) % bound;  // 2^64 mod bound: lower values are redrawn
    while (true) {
      const std::uint64_t word = next();
      if (word >= uneven) return word % bound;
    }
  }

  bool chance(double probability) { return unit() < probability; }

  /// Approximately normal with mean 0 and deviation 1, within ±3.46: the sum of four uniform
  /// numbers of 16 bits.
  double bell() {
    const std::uint64_t word = next();
    const std::uint64_t sum =
        (word & 0xFFFFU) + (word >> 16U & 0xFFFFU) + (word >> 32U & 0xFFFFU) + (word >> 48U);
    constexpr double mean = 4 * 65535 / 2.0;
    constexpr double deviation = 37837.22752279088;  // sqrt(4 × (2^32 − 1) / 12)
    return (static_cast<double>(sum) - mean) / deviation;
  }

 private:
  static constexpr std::uint64_t step = 0x9E3779B97F4A7C15U;
  std::uint64_t state_ = 0;
};

}  // namespace stageline::lab
