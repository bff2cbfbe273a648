// Objects inside the rows of a comparison.
#pragma once

#include "tools/base/json.hpp"
#include "tools/compare/uncertainty.hpp"
#include "tools/study/energy.hpp"

namespace stageline {

/// Sets `energy` and `cost`, each where it is known.
void put_energy(Json& row, const StepEnergy& energy);

/// Distribution, engine, share of being the best, and what is critical. `distribution` is of
/// `steps`.
Json scenarios_json(const ScenarioSteps& steps, const Distribution& distribution, double best);

}  // namespace stageline
