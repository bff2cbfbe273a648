// Repeats and reads what a user typed.
#include "tools/commands/typed.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "sim/base/units.hpp"
#include "tools/base/text.hpp"

namespace stageline::cli {

std::string typed_setting(const CommonFlags& flags, const std::vector<Flag>& all,
                          const std::vector<SettingOf>& more,
                          const std::vector<std::string>& keys) {
  const auto is_repeated = [&](const SettingRow& row) {
    return row.of == SettingOf::question || row.of == SettingOf::training ||
           std::find(more.begin(), more.end(), row.of) != more.end() ||
           std::find(keys.begin(), keys.end(), row.key) != keys.end();
  };
  std::vector<std::string> repeated;
  for (const SettingRow& row : setting_rows()) {
    if (is_repeated(row)) repeated.push_back(row.flag());
  }
  std::string text = shell_word(flags.trace());
  for (const Flag flag : all) {
    if (!flag.given()) continue;
    if (std::find(repeated.begin(), repeated.end(), flag.name()) == repeated.end()) continue;
    text += " " + flag.name();
    for (const std::string& value : flag.values()) text += " " + shell_word(value);
  }
  return text;
}

double seconds_of(const std::string& text, const std::string& flag) {
  for (const auto& [unit, seconds] : {std::pair("h", 3600.0), {"min", 60.0}, {"d", 86400.0}}) {
    if (!text.ends_with(unit)) continue;
    const auto number =
        parse_number<double>(text.substr(0, text.size() - std::string_view(unit).size()));
    if (number && *number > 0 && *number <= 1e9) return *number * seconds;
  }
  try {
    const Time time = parse_time(text);
    if (time > Time{}) return to_seconds(time);
  } catch (const std::invalid_argument&) {  // said below
  }
  throw UsageError(
      fmt::format("{} is a time above 0 (60s, 30min, 8h, 2d), not \"{}\"", flag, text));
}

}  // namespace stageline::cli
