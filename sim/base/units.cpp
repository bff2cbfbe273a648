// Parses, prints and converts times, sizes and bandwidths.
#include "sim/base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

// 128 bits: 2^63 bytes times 10^12 picoseconds does not fit in 64.
__extension__ using Wide = __int128;

struct Unit {
  std::string_view name;
  std::int64_t scale;  // of the base unit
};

constexpr std::int64_t kilo = 1'000;
constexpr std::int64_t mega = 1'000'000;
constexpr std::int64_t giga = 1'000'000'000;
constexpr std::int64_t tera = 1'000'000'000'000;
constexpr std::array<Unit, 6> time_units{
    {{"ps", 1}, {"ns", kilo}, {"us", mega}, {"µs", mega}, {"ms", giga}, {"s", tera}}};
constexpr std::array<Unit, 9> byte_units{{{"B", 1},
                                          {"kB", kilo},
                                          {"MB", mega},
                                          {"GB", giga},
                                          {"TB", tera},
                                          {"KiB", 1LL << 10},
                                          {"MiB", 1LL << 20},
                                          {"GiB", 1LL << 30},
                                          {"TiB", 1LL << 40}}};
constexpr std::array<Unit, 12> bandwidth_units{{{"B/s", 1},
                                                {"kB/s", kilo},
                                                {"MB/s", mega},
                                                {"GB/s", giga},
                                                {"TB/s", tera},
                                                {"KiB/s", 1LL << 10},
                                                {"MiB/s", 1LL << 20},
                                                {"GiB/s", 1LL << 30},
                                                {"TiB/s", 1LL << 40},
                                                {"Mbit/s", mega / 8},
                                                {"Gbit/s", giga / 8},
                                                {"Tbit/s", tera / 8}}};
constexpr std::int64_t most_bytes = std::int64_t{1} << 62;

// A decimal number as digits · 10^exponent. The first 25 significant digits are kept: times the
// largest scale they fit in 128 bits, and what is cut off is far below one base unit.
struct Decimal {
  Wide digits = 0;
  std::int64_t exponent = 0;
};

// Converts a text that read_number() has read as a finite non-negative number.
Decimal decimal_of(std::string_view number) {
  constexpr int most_digits = 25;
  Decimal decimal;
  int kept = 0;
  bool point = false;
  std::size_t i = 0;
  for (; i < number.size() && number[i] != 'e' && number[i] != 'E'; ++i) {
    if (number[i] == '.') {
      point = true;
      continue;
    }
    if (kept < most_digits) {
      decimal.digits = decimal.digits * 10 + (number[i] - '0');
      if (decimal.digits != 0) ++kept;
      decimal.exponent -= point ? 1 : 0;
    } else {
      decimal.exponent += point ? 0 : 1;
    }
  }
  if (i == number.size()) return decimal;
  const bool plus = number[i + 1] == '+';
  std::int64_t exponent = 0;
  std::from_chars(number.data() + i + (plus ? 2 : 1), number.data() + number.size(), exponent);
  decimal.exponent += exponent;
  return decimal;
}

// decimal · scale to the nearest whole number, halves up; empty above `limit`.
std::optional<std::int64_t> scaled_to_whole(Decimal decimal, std::int64_t scale,
                                            std::int64_t limit) {
  Wide value = decimal.digits * scale;
  if (value == 0) return 0;
  if (decimal.exponent < -37) return 0;  // at most 10^25 · 10^12.1 / 10^38
  for (std::int64_t e = 0; e < decimal.exponent; ++e) {
    if (value > limit) return std::nullopt;
    value *= 10;
  }
  Wide divisor = 1;
  for (std::int64_t e = decimal.exponent; e < 0; ++e) divisor *= 10;
  const Wide rest = value % divisor;
  value = value / divisor + (rest >= divisor - rest ? 1 : 0);
  if (value > limit) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// "<number><blank?><unit>" to a whole count of the base unit, at most `limit`. Only 0 needs no
// unit.
template <std::size_t N>
std::int64_t parse_quantity(std::string_view text, std::string_view what, std::string_view example,
                            const std::array<Unit, N>& units, std::int64_t limit) {
  const auto refuse = [&](std::string_view why) {
    throw std::invalid_argument(
        without_nul(fmt::format("{} \"{}\" {}; write it like {}", what, text, why, example)));
  };
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = read_number(text.data(), end, value);
  if (error == std::errc::result_out_of_range) {
    // Out of range is either too large or too small; the exponent's sign distinguishes them.
    const std::string_view number(text.data(), as_size(rest - text.data()));
    if (number.find_first_of("eE") != number.find('-') - 1) refuse("is too large");
    value = 0;
  } else if (error != std::errc{}) {
    refuse("does not begin with a number");
  }
  if (!std::isfinite(value)) refuse("is not a finite number");
  if (value < 0 || (value == 0 && std::signbit(value))) refuse("is negative");
  std::string_view unit(rest, as_size(end - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  std::int64_t scale = 0;
  if (unit.empty() && value == 0) scale = 1;
  for (const Unit& known : units) {
    if (known.name == unit) scale = known.scale;
  }
  if (scale == 0) {
    std::string names;
    for (const Unit& known : units) names += fmt::format(" {}", known.name);
    refuse(unit.empty() ? fmt::format("has no unit (one of{})", names)
                        : fmt::format("has no known unit (one of{})", names));
  }
  if (value == 0) return 0;
  const std::string_view number(text.data(), as_size(rest - text.data()));
  const std::optional<std::int64_t> whole = scaled_to_whole(decimal_of(number), scale, limit);
  if (!whole) refuse("is too large");
  return *whole;
}

std::string with_unit(double value, std::string_view unit) {
  const int decimals = value < 10 ? 3 : value < 100 ? 2 : 1;
  return fmt::format("{:.{}f} {}", value, decimals, unit);
}

}  // namespace

std::optional<Time> scaled(Time time, std::int64_t numerator, std::int64_t denominator) {
  const Wide product = static_cast<Wide>(time.count()) * numerator;
  const Wide result = (product + denominator / 2) / denominator;
  if (result > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return Time{static_cast<std::int64_t>(result)};
}

Time transfer_time(Bytes bytes, Bandwidth bandwidth) {
  if (bandwidth.is_unlimited()) return Time{};
  const Wide scaled_bytes = static_cast<Wide>(bytes.count) * 1'000'000'000'000;
  const Wide rate = bandwidth.bytes_per_second;
  const Wide time = (scaled_bytes + rate / 2) / rate;
  if (time > longest_run.count()) {
    throw UsageError(fmt::format(
        "{} at {} take {:.3g} s, and at most {:.3g} s (53 days) can be simulated; "
        "check the unit of the bandwidth",
        print(bytes), print(bandwidth), static_cast<double>(time) / 1e12, to_seconds(longest_run)));
  }
  return Time{static_cast<std::int64_t>(time)};
}

Time from_seconds(double seconds) {
  if (!std::isfinite(seconds)) throw std::invalid_argument("a time must be a finite number");
  if (seconds < 0) {
    throw std::invalid_argument(fmt::format("a time must not be negative (it is {} s)", seconds));
  }
  if (seconds > to_seconds(longest_input)) {
    throw std::invalid_argument(fmt::format("a time must be at most {:.0f} s (it is {:.6g} s)",
                                            to_seconds(longest_input), seconds));
  }
  return Time{std::llround(seconds * 1e12)};
}

double to_seconds(Time time) { return static_cast<double>(time.count()) / 1e12; }

Time parse_time(std::string_view text) {
  return Time{
      parse_quantity(text, "time", "\"1.5ms\" or \"20us\"", time_units, longest_input.count())};
}

Bytes parse_bytes(std::string_view text) {
  return Bytes{parse_quantity(text, "size", "\"4MB\" or \"16GiB\"", byte_units, most_bytes)};
}

Bandwidth parse_bandwidth(std::string_view text) {
  if (text == "unlimited") return Bandwidth::unlimited();
  const Bandwidth parsed{parse_quantity(text, "bandwidth", "\"12GB/s\" or \"unlimited\"",
                                        bandwidth_units, most_bytes)};
  if (parsed.bytes_per_second == 0) {
    throw std::invalid_argument(
        fmt::format("bandwidth \"{}\" is zero; a link must move at least 1 B/s", text));
  }
  return parsed;
}

std::string print(Time time) {
  const auto ps = static_cast<double>(time.count());
  const double size = std::abs(ps);
  if (size == 0) return "0 s";
  if (size < 1e3) return fmt::format("{} ps", time.count());
  if (size < 1e6) return with_unit(ps / 1e3, "ns");
  if (size < 1e9) return with_unit(ps / 1e6, "µs");
  if (size < 1e12) return with_unit(ps / 1e9, "ms");
  return with_unit(ps / 1e12, "s");
}

std::string print(Bytes bytes) {
  const auto count = static_cast<double>(bytes.count);
  const double size = std::abs(count);
  if (size < 1e3) return fmt::format("{} B", bytes.count);
  if (size < 1e6) return with_unit(count / 1e3, "kB");
  if (size < 1e9) return with_unit(count / 1e6, "MB");
  if (size < 1e12) return with_unit(count / 1e9, "GB");
  return with_unit(count / 1e12, "TB");
}

std::string print(Bandwidth bandwidth) {
  if (bandwidth.is_unlimited()) return "unlimited";
  return print(Bytes{bandwidth.bytes_per_second}) + "/s";
}

}  // namespace stageline
