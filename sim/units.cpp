#include "sim/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "sim/errors.hpp"

namespace stageline {
namespace {

// 128 bits: 2^63 bytes times 10^12 picoseconds does not fit in 64.
__extension__ using Wide = __int128;

struct Unit {
  std::string_view name;
  double scale;
};

constexpr std::array<Unit, 6> time_units{
    {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"µs", 1e6}, {"ms", 1e9}, {"s", 1e12}}};
constexpr std::array<Unit, 9> byte_units{{{"B", 1},
                                          {"kB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"TB", 1e12},
                                          {"KiB", 1024.0},
                                          {"MiB", 1048576.0},
                                          {"GiB", 1073741824.0},
                                          {"TiB", 1099511627776.0}}};
constexpr std::array<Unit, 12> bandwidth_units{{{"B/s", 1},
                                                {"kB/s", 1e3},
                                                {"MB/s", 1e6},
                                                {"GB/s", 1e9},
                                                {"TB/s", 1e12},
                                                {"KiB/s", 1024.0},
                                                {"MiB/s", 1048576.0},
                                                {"GiB/s", 1073741824.0},
                                                {"TiB/s", 1099511627776.0},
                                                {"Mbit/s", 1e6 / 8},
                                                {"Gbit/s", 1e9 / 8},
                                                {"Tbit/s", 1e12 / 8}}};

// "<number><blank?><unit>" to a whole count of the base unit, at most `limit`. A bare number is
// taken only where `bare` says so, or when it is 0.
template <std::size_t N>
std::int64_t parse_quantity(std::string_view text, std::string_view what, std::string_view example,
                            const std::array<Unit, N>& units, bool bare, double limit) {
  const auto refuse = [&](std::string_view why) {
    throw std::invalid_argument(
        fmt::format("{} \"{}\" {}; write it like {}", what, text, why, example));
  };
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) {
    // Out of range is too large or too small; the sign of the exponent tells.
    const std::string_view number(text.data(), static_cast<std::size_t>(rest - text.data()));
    if (number.find_first_of("eE") != number.find('-') - 1) refuse("is too large");
    value = 0;
  } else if (error != std::errc{}) {
    refuse("does not begin with a number");
  }
  if (!std::isfinite(value)) refuse("is not a finite number");
  if (value < 0 || (value == 0 && std::signbit(value))) refuse("is negative");
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  double scale = 0;
  if (unit.empty() && (bare || value == 0)) scale = 1;
  for (const Unit& known : units) {
    if (known.name == unit) scale = known.scale;
  }
  if (scale == 0) {
    std::string names;
    for (const Unit& known : units) names += fmt::format(" {}", known.name);
    refuse(unit.empty() ? fmt::format("has no unit (one of{})", names)
                        : fmt::format("has no unit that is known (one of{})", names));
  }
  if (value * scale > limit) refuse("is too large");
  return std::llround(value * scale);
}

std::string scaled(double value, std::string_view unit) {
  const int decimals = value < 10 ? 3 : value < 100 ? 2 : 1;
  return fmt::format("{:.{}f} {}", value, decimals, unit);
}

}  // namespace

Time transfer_time(Bytes bytes, Bandwidth bandwidth) {
  if (bandwidth.is_unlimited()) return Time{};
  const Wide scaled_bytes = static_cast<Wide>(bytes.count) * 1'000'000'000'000;
  const Wide rate = bandwidth.bytes_per_second;
  const Wide time = (scaled_bytes + rate / 2) / rate;
  if (time > longest_run.count()) {
    throw UsageError(fmt::format(
        "{} at {} take {:.3g} s, and at most {:.3g} s (53 days) can be simulated; check the unit "
        "of "
        "the bandwidth",
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
  return Time{parse_quantity(text, "time", "\"1.5ms\" or \"20us\"", time_units, false,
                             static_cast<double>(longest_input.count()))};
}

Bytes parse_bytes(std::string_view text) {
  return Bytes{parse_quantity(text, "size", "\"4MB\" or \"16GiB\"", byte_units, true,
                              4611686018427387904.0)};
}

Bandwidth parse_bandwidth(std::string_view text) {
  if (text == "unlimited") return Bandwidth::unlimited();
  const Bandwidth parsed{parse_quantity(text, "bandwidth", "\"12GB/s\" or \"unlimited\"",
                                        bandwidth_units, false, 4611686018427387904.0)};
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
  if (size < 1e6) return scaled(ps / 1e3, "ns");
  if (size < 1e9) return scaled(ps / 1e6, "µs");
  if (size < 1e12) return scaled(ps / 1e9, "ms");
  return scaled(ps / 1e12, "s");
}

std::string print(Bytes bytes) {
  const auto count = static_cast<double>(bytes.count);
  const double size = std::abs(count);
  if (size < 1e3) return fmt::format("{} B", bytes.count);
  if (size < 1e6) return scaled(count / 1e3, "kB");
  if (size < 1e9) return scaled(count / 1e6, "MB");
  if (size < 1e12) return scaled(count / 1e9, "GB");
  return scaled(count / 1e12, "TB");
}

std::string print(Bandwidth bandwidth) {
  if (bandwidth.is_unlimited()) return "unlimited";
  return print(Bytes{bandwidth.bytes_per_second}) + "/s";
}

}  // namespace stageline
