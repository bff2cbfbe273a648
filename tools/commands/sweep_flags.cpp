// Declares the flags of sweeps, and reads them.
#include "tools/commands/sweep_flags.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/files.hpp"
#include "tools/inputs/settings.hpp"

namespace stageline::cli {
namespace {

constexpr std::int64_t usual_scenarios = 1000;

// "--microbatch-size" as the key of a request.
std::string key_of(const Flag& flag) {
  for (const SettingRow& row : setting_rows()) {
    if (row.flag() == flag.name()) return std::string(row.key);
  }
  return flag.name();
}

// The text of a sweep file; empty for a trace.
std::string sweep_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  std::string text = read_text(path);
  return is_sweep_file(text) ? text : "";
}

// Without an axis it is most likely the name of a sweep file.
void check_there(const std::string& file) {
  std::error_code error;
  if (!file.ends_with(".json") || file.find(':') != std::string::npos) return;
  if (std::filesystem::exists(file, error)) return;
  throw UsageError(fmt::format(
      "there is no file \"{}\"; a sweep is a file (stageline-sweep 1), or a TRACE with --axis",
      file));
}

}  // namespace

void add_setting_flags(Flags command, SettingFlags& flags, const std::string& trace_help) {
  add_problem_flags(command, flags.common, Many::yes, Many::yes);
  add_degree_flags(command, flags.common);
  add_setting(command, flags.common, "messages");
  add_perturbation_flags(command, flags.perturbations, usual_scenarios);
  command.find("TRACE").describe(trace_help);
  command.find("--schedule").describe("NAME[:knob=value,…], or a program, FILE.slp; default: 1f1b");
  command.find("--devices").describe("number of devices; default: all of the cluster, or 4");
  flags.all = command.all();
}

std::vector<SettingWord> words_of(const SettingFlags& flags) {
  std::vector<SettingWord> words;
  for (const Flag flag : flags.all) {
    if (!flag.given() || flag.name() == "TRACE") continue;
    const std::vector<std::string> values = flag.values();
    if (values.size() > 1) {
      throw UsageError(
          fmt::format("{} is given {} times, and a scenario has one; several are an "
                      "axis: --axis {}={}|{}",
                      flag.name(), values.size(), key_of(flag), values[0], values[1]));
    }
    words.push_back({key_of(flag), values.empty() ? "true" : values.front()});
  }
  return words;
}

void add_sweep_spec_flags(Flags command, SweepSpecFlags& flags) {
  add_setting_flags(command, flags.settings,
                    "a trace, as compare takes it; or a sweep file (stageline-sweep 1) in place of "
                    "all settings and axes");
  command.find("TRACE").required(false);
  const Flags search = command.in(SettingGroup::search);
  search.common()
      .option("--axis", flags.axes,
              "NAME=VALUES: a setting by its flag's name, or a variable that stands as {NAME} in "
              "other settings. VALUES: a list 8,16,32 (a|b where values have commas), 2..16, "
              "8..64:8 (by 8), 1GB/s..400GB/s:log7 or :lin7 (seven values), 1..2:random or "
              ":randomlog (one a draw). Repeatable, the last the fastest")
      .repeatable();
  search.option("--draws", flags.draws, "how often the random axes are drawn");
  search.option("--draw-seed", flags.draw_seed, "of these draws; default: 1");
  search.option("--chunk", flags.chunk,
                "scenarios in a file; default: 1000 to 10000, by their number");
}

bool spec_given(const SweepSpecFlags& flags) {
  return !flags.settings.common.trace().empty() || !flags.axes.empty();
}

SweepAxis axis_of_flag(const std::string& flag, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError(
        fmt::format("{} is NAME=VALUES, such as microbatches=8,16,32, not \"{}\"", flag, text));
  }
  std::string name = text.substr(0, equals);
  std::replace(name.begin(), name.end(), '-', '_');
  if (name == "batch") name = "profile_batch";
  return parse_axis(name, text.substr(equals + 1));
}

SweepSpec spec_of(const SweepSpecFlags& flags) {
  const std::string& what = flags.settings.common.trace();
  std::vector<SettingWord> words = words_of(flags.settings);
  const std::string file = sweep_file(what);
  if (!file.empty()) {
    if (!words.empty() || !flags.axes.empty() || flags.draws || flags.draw_seed || flags.chunk) {
      throw UsageError(fmt::format(
          "{} is a sweep file, which says all settings and axes; leave the flags of these out",
          what));
    }
    return read_sweep(file, what);
  }
  if (flags.axes.empty()) check_there(what);
  SweepSpec spec;
  spec.fixed = std::move(words);
  if (!what.empty()) spec.fixed.push_back({"trace", what});
  for (const std::string& axis : flags.axes) spec.axes.push_back(axis_of_flag("--axis", axis));
  const auto at_least = [](const std::optional<std::int64_t>& value, std::int64_t least,
                           std::int64_t most, const char* flag) {
    if (!value || (*value >= least && *value <= most)) return;
    throw UsageError(fmt::format("{} is from {} to {}, not {}", flag, least, most, *value));
  };
  at_least(flags.draws, 1, most_sweep_scenarios, "--draws");
  at_least(flags.draw_seed, 0, most_sweep_scenarios, "--draw-seed");
  at_least(flags.chunk, 1, most_chunk, "--chunk");
  spec.draws = flags.draws.value_or(0);
  spec.draw_seed = static_cast<std::uint64_t>(flags.draw_seed.value_or(1));
  spec.chunk = flags.chunk.value_or(0);
  return checked(std::move(spec));
}

std::int64_t parse_scenario_number(const SweepSpec& spec, const std::string& text) {
  const auto number = parse_number<std::int64_t>(text);
  if (number && *number >= 0 && *number < spec.scenarios()) return *number;
  throw UsageError(fmt::format("--show is the number of a scenario, from 0 to {}, not \"{}\"",
                               spec.scenarios() - 1, text));
}

}  // namespace stageline::cli
