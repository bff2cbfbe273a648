// An axis of a sweep: how many values it has, and the value of each number. Ranges are computed,
// never listed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

/// A number with its unit, as it was typed: "1GB/s", "8", "0.5".
struct AxisEnd {
  std::string text;
  double value = 0;  // in the unit of the lower end
};

/// One setting, or one variable, and its values.
struct SweepAxis {
  enum class Kind : std::uint8_t {
    list,
    step,        // from, from + step, … up to the end
    linear,      // `count` values, evenly spaced
    log,         // `count` values, evenly spaced by their logarithm
    random,      // a value for each draw, uniform
    random_log,  // a value for each draw, uniform by its logarithm
  };

  std::string name;
  Kind kind = Kind::list;
  std::vector<std::string> values{};  // of a list
  AxisEnd from{};
  AxisEnd to{};
  std::string unit{};
  bool whole = false;  // both ends are whole numbers without a unit, and so is every value
  double step = 1;
  std::int64_t count = 0;  // values; of a random axis 1, since it has no digit of its own
  std::string text{};      // "1GB/s..400GB/s:log7": the range as typed; empty for a list

  bool is_random() const { return kind == Kind::random || kind == Kind::random_log; }
  /// Value number `digit`, from 0 to count − 1, as it would be typed.
  std::string value(std::int64_t digit) const;
  /// The value of a random axis in a draw. It depends on the name of the axis, the seed and the
  /// number of the draw alone.
  std::string drawn(std::uint64_t draw, std::uint64_t seed) const;
};

/// A list "8,16,32", or with values that have commas "12GB/s,5us|25GB/s,5us"; or a range:
/// "2..16" by 1, "8..64:8" by 8, "0.1..0.9:lin5" five values, "1GB/s..400GB/s:log7" seven by their
/// logarithm, "4..256:random" and "4..256:randomlog" one for each draw. Where both ends are whole
/// numbers without a unit, so are all values, each once. Throws UsageError, which begins with
/// "axis NAME".
SweepAxis parse_axis(const std::string& name, const std::string& text);

/// A list of those values. Throws UsageError for none, and for one that is there twice.
SweepAxis list_axis(const std::string& name, std::vector<std::string> values);

}  // namespace stageline
