// A sweep as flags: the settings that compare takes, each fixed, and --axis for those that vary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands/case_flags.hpp"
#include "tools/commands/perturbation_flags.hpp"
#include "tools/sweep/spec.hpp"

namespace stageline::cli {

/// Settings as typed, each a flag of compare.
struct SettingFlags {
  CommonFlags common;
  PerturbationFlags perturbations;
  std::vector<Flag> all;
};

/// TRACE, with this help, and the flags of all settings.
void add_setting_flags(Flags command, SettingFlags& flags, const std::string& trace_help);

/// The settings that are given but the trace. Throws UsageError for one with several values.
std::vector<SettingWord> words_of(const SettingFlags& flags);

struct SweepSpecFlags {
  SettingFlags settings;  // its trace may be a sweep file
  std::vector<std::string> axes;
  std::optional<std::int64_t> draws;
  std::optional<std::int64_t> draw_seed;
  std::optional<std::int64_t> chunk;
};

/// SWEEP|TRACE, all settings, --axis, --draws, --draw-seed, --chunk.
void add_sweep_spec_flags(Flags command, SweepSpecFlags& flags);

/// Whether anything of a sweep is given.
bool spec_given(const SweepSpecFlags& flags);

/// Reads the sweep file where there is one. Throws UsageError and TraceError.
SweepSpec spec_of(const SweepSpecFlags& flags);

/// "NAME=VALUES". Throws UsageError, which begins with `flag`.
SweepAxis axis_of_flag(const std::string& flag, const std::string& text);

/// Throws UsageError where the sweep has no such scenario.
std::int64_t parse_scenario_number(const SweepSpec& spec, const std::string& text);

}  // namespace stageline::cli
