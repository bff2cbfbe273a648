// The settings that a sweep may fix or vary: those of a comparison, by the keys of a request, and
// what is uncertain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/answers/answer.hpp"
#include "tools/inputs/perturbation_file.hpp"

namespace stageline {

/// A setting and its value, as it would be typed: {"microbatches", "32"}.
struct SettingWord {
  std::string key;
  std::string text;
  friend bool operator==(const SettingWord&, const SettingWord&) = default;
};

/// All keys, as answers/request.schema.json has them, and those of perturbations: jitter,
/// sometimes_slow, pause, perturb, seed, scenarios, freeze, and scenario, the number of one.
const std::vector<std::string>& sweep_keys();
bool is_sweep_key(const std::string& key);

/// Whether the setting decides which trace is opened; or which trace and cluster.
bool decides_model(std::string_view key);
bool decides_setting(std::string_view key);

/// The question of one scenario.
struct SweepQuestion {
  answers::Request request;  // of one schedule, cut and number of devices
  PerturbationTexts perturbation;
  std::optional<std::int64_t> scenarios;  // default: 1000
  bool freeze = false;
  std::optional<std::int64_t> scenario;  // that one alone
};

/// Throws UsageError and TraceError for values that are not allowed, and for several schedules or
/// cuts at once.
SweepQuestion question_of(const std::vector<SettingWord>& words);

/// Whether something uncertain is named, if only as 0 % of it: the baseline of an axis.
bool asks_for_scenarios(const SweepQuestion& question);

/// What is uncertain. Throws UsageError and TraceError, also where the number of a scenario, a seed
/// or a number of scenarios has nothing to apply to.
Perturbation perturbation_of(const SweepQuestion& question);

/// The same question to compare or whatif: "--devices 4 --schedule zb_h1", each word one of a POSIX
/// shell, the trace first.
std::string flags_of(const std::vector<SettingWord>& words);

}  // namespace stageline
