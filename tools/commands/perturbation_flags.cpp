// Declares the flags of perturbations, and reads them.
#include "tools/commands/perturbation_flags.hpp"

#include <fmt/core.h>

#include <utility>

#include "sim/errors.hpp"

namespace stageline {
void add_perturbation_flags(Flags command, PerturbationFlags& flags, std::int64_t scenarios) {
  command.option("--perturb", flags.texts.perturb,
                 "a file of perturbations (stageline-perturbation 1)");
  command.option("--jitter", flags.texts.jitter,
                 "every op takes a random multiple of its time: the coefficient of variation (5%), "
                 "or \"measured\"; \",transfers\" behind it: messages, too");
  command.option("--sometimes-slow", flags.texts.sometimes,
                 "a device or link that is slower in a share of the scenarios: gpu2:1.2@0.1, "
                 "links:1.5@0.05; whatif takes a device also by --slow");
  command.option("--pause", flags.texts.pause,
                 "STEPS:TIME: in one of so many steps of a device a pause of TIME (100:50ms)");
  command.option("--scenarios", flags.scenarios, fmt::format("how many; default: {}", scenarios));
  command.option("--seed", flags.texts.seed, "of the random numbers; default: 1");
  command.flag("--freeze", flags.freeze,
               "where links are shared, keep the order in which they serve transfers: faster, and "
               "the error is reported");
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

}  // namespace stageline
