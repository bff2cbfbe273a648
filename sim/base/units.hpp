// Exact units: Time in picoseconds, Bytes, Bandwidth, and the one function that converts bytes to
// time. Floating point is used only in the parse_* functions and from_seconds, rounded once.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>

namespace stageline {

/// A point in virtual time, or a duration. 64 bits of picoseconds are 106 days.
using Time = std::chrono::duration<std::int64_t, std::pico>;

struct Bytes {
  std::int64_t count = 0;

  friend auto operator<=>(const Bytes&, const Bytes&) = default;
  Bytes& operator+=(Bytes other) { return count += other.count, *this; }
  Bytes& operator-=(Bytes other) { return count -= other.count, *this; }
  friend Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  friend Bytes operator*(Bytes a, std::int64_t k) { return {a.count * k}; }
};

/// Bytes per second. `unlimited` transfers any amount in no time.
struct Bandwidth {
  std::int64_t bytes_per_second = std::numeric_limits<std::int64_t>::max();

  friend auto operator<=>(const Bandwidth&, const Bandwidth&) = default;
  static constexpr Bandwidth unlimited() { return {}; }
  constexpr bool is_unlimited() const { return *this == unlimited(); }
};

inline constexpr double seconds_an_hour = 3600;

/// The longest run, and the longest transfer, that is simulated: half the range of Time (53 days),
/// so that the sum of two moments still fits. Sums of bytes have the same limit.
inline constexpr Time longest_run{std::int64_t{1} << 62};
inline constexpr Bytes most_bytes_held{std::int64_t{1} << 62};

/// The time for which `bytes` occupy a link of that bandwidth, rounded to the nearest picosecond.
/// Throws UsageError where that is longer than `longest_run`.
Time transfer_time(Bytes bytes, Bandwidth bandwidth);

/// Seconds, rounded once to the nearest picosecond. Throws std::invalid_argument when the value is
/// not finite, negative or longer than `longest_input` (a program adds many of these up).
Time from_seconds(double seconds);
double to_seconds(Time time);
inline constexpr Time longest_input = Time{100'000'000'000'000'000};  // 10^5 s, a little over a day

/// time · numerator / denominator in 128 bits, rounded to the nearest picosecond, halves up.
/// numerator >= 0, denominator > 0. Empty where the result exceeds 64 bits (106 days).
std::optional<Time> scaled(Time time, std::int64_t numerator, std::int64_t denominator);

/// Text to values: "12ms", "5us", "1.5 s", "0" (ps ns us ms s); "4MB", "16GiB", "0" (B kB MB GB
/// TB, KiB MiB GiB TiB); "12GB/s", "100Gbit/s", "unlimited". Throw std::invalid_argument with one
/// sentence that names the text and the rule.
Time parse_time(std::string_view text);
Bytes parse_bytes(std::string_view text);
Bandwidth parse_bandwidth(std::string_view text);

/// Values to short text for people: "1.500 ms", "4.190 MB", "12.00 GB/s".
std::string print(Time time);
std::string print(Bytes bytes);
std::string print(Bandwidth bandwidth);

}  // namespace stageline
