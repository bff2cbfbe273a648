// --jitter and the other flags that say what may differ from the costs, and the scenarios that they
// make up; for the commands that ask what is uncertain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/commands/flags.hpp"
#include "tools/inputs/perturbation_file.hpp"
#include "tools/study/whatif/scenario_runs.hpp"

namespace stageline::cli {

struct PerturbationFlags {
  PerturbationTexts texts;
  std::optional<std::int64_t> scenarios;
  bool freeze = false;
};

/// --perturb, --jitter, --sometimes-slow, --pause, --scenarios, --seed, --freeze. `scenarios`: how
/// many there are by default.
void add_perturbation_flags(Flags command, PerturbationFlags& flags, std::int64_t scenarios);

/// The scenarios that are asked for; without any perturbation where none of the flags that state
/// one is given. Throws UsageError, also where --scenarios, --seed or --freeze has nothing to
/// apply to and `others`, further perturbations of the command, is false.
ScenarioRequest scenarios_of(const PerturbationFlags& flags, std::int64_t scenarios, bool others);

}  // namespace stageline::cli
