// Declares the flags of perturbations, and reads them.
#include "tools/commands/perturbation_flags.hpp"

#include <fmt/core.h>

#include <utility>

#include "sim/base/errors.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/inputs/settings.hpp"

namespace stageline::cli {

void add_perturbation_flags(Flags command, PerturbationFlags& flags, std::int64_t scenarios) {
  const auto add = [&](std::string_view key, auto& value) {
    const SettingRow& row = *find_setting(key);
    return place_of(command, key).option(row.flag(), value, std::string(row.help));
  };
  add("perturb", flags.texts.perturb);
  add("jitter", flags.texts.jitter);
  add("sometimes_slow", flags.texts.sometimes);
  add("pause", flags.texts.pause);
  add("scenarios", flags.scenarios).describe(fmt::format("how many; default: {}", scenarios));
  add("seed", flags.texts.seed);
  const SettingRow& freeze = *find_setting("freeze");
  place_of(command, "freeze").flag(freeze.flag(), flags.freeze, std::string(freeze.help));
}

ScenarioRequest scenarios_of(const PerturbationFlags& flags, std::int64_t scenarios, bool others) {
  ScenarioRequest request;
  request.perturbation = open_perturbation(flags.texts);
  request.scenarios = flags.scenarios.value_or(scenarios);
  request.freeze = flags.freeze;
  if (!request.perturbation.none() || others) return request;
  for (const auto& [given, flag] : {std::pair{flags.scenarios.has_value(), "--scenarios"},
                                    {!flags.texts.seed.empty(), "--seed"},
                                    {flags.freeze, "--freeze"}}) {
    if (!given) continue;
    throw UsageError(fmt::format(
        "{} has nothing to apply to, since nothing is uncertain; give --jitter 5%, --sometimes-slow "
        "gpu2:1.2@0.1, --pause 100:50ms, or a file of them by --perturb",
        flag));
  }
  return request;
}

}  // namespace stageline::cli
