// A sweep as a value: fixed settings, axes, and the scenario of each number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.hpp"
#include "tools/sweep/axis.hpp"
#include "tools/sweep/words.hpp"

namespace stageline {

struct JsonValue;  // traces/json/tree.hpp

/// Scenario numbers are the digits of the axes, the last axis the fastest. An axis is a setting, or
/// a variable that stands as {name} in other settings. Axes of random values have no digits of
/// their own: each draw, the last digit of all, has a value of each.
struct SweepSpec {
  std::vector<SettingWord> fixed;  // by key, ascending
  std::vector<SweepAxis> axes;     // the slowest first
  std::int64_t draws = 0;          // of the random axes; 0: there are none
  std::uint64_t draw_seed = 1;
  std::int64_t chunk = 0;  // scenarios in a file

  std::int64_t scenarios() const;
  std::int64_t chunks() const { return (scenarios() + chunk - 1) / chunk; }
};

inline constexpr std::int64_t most_sweep_scenarios = 1'000'000'000;
inline constexpr std::int64_t most_chunk = 1'000'000;

/// A sweep file: {"format": "stageline-sweep 1", "fixed": {"trace": …}, "axes": {"devices": [2, 4],
/// "link": "1GB/s..400GB/s:log7"}, "draws": 100, "draw_seed": 1, "chunk": 1000}. Throws TraceError,
/// which begins with `file`, and what checked() throws.
SweepSpec read_sweep(std::string_view json, const std::string& file = "the sweep");
/// The same of JSON that has been read.
SweepSpec read_sweep(const JsonValue& root, const std::string& file);

/// Whether a text is a sweep file: an object of that format.
bool is_sweep_file(std::string_view text);

/// Sorts the fixed settings, fixes 1F1B where no schedule is said, chooses the size of a chunk
/// where it is 0, and looks at every value of a list and both ends of a range. Throws UsageError
/// for an unknown axis, one that is fixed, too, a value that is not allowed, too many scenarios.
SweepSpec checked(SweepSpec spec);

/// The question as a sweep file, the same for the same question.
Json question_json(const SweepSpec& spec);

/// The digits of a scenario: one for each axis, and one for the draw where there are random axes.
std::vector<std::int64_t> digits_of(const SweepSpec& spec, std::int64_t number);
std::int64_t number_of(const SweepSpec& spec, const std::vector<std::int64_t>& digits);

/// The value of each axis.
std::vector<std::string> axis_values(const SweepSpec& spec, std::int64_t number);

/// All that a text may become, its variables in place; none where that is more than 10000 texts, or
/// a variable is random.
std::vector<std::string> texts_of(const SweepSpec& spec, const std::string& text);

/// The settings of a scenario, its variables in place.
std::vector<SettingWord> words_of(const SweepSpec& spec, const std::vector<std::string>& values);

}  // namespace stageline
