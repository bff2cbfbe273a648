// Objects inside the rows of a comparison, and lists of ops.
#pragma once

#include <vector>

#include "sim/degrees.hpp"
#include "sim/op.hpp"
#include "tools/base/json.hpp"
#include "tools/compare/uncertainty.hpp"
#include "tools/report/figure_table.hpp"
#include "tools/study/case.hpp"

namespace stageline::report {

/// Sets the key of the figure, where it has one for this row.
void put_figure(Json& row, const FigureRow& figure, const FigureFacts& facts);

/// Sets `energy` and `cost`, each where it is known.
void put_energy(Json& row, const StepEnergy& energy);

/// Distribution, engine, share of being the best, and what is critical. `distribution` is of
/// `steps`.
Json scenarios_json(const ScenarioSteps& steps, const Distribution& distribution, double best);

/// Sets `zero`, with 2 and 3 `zero_every`, and `shard_group` where there are some. The pipeline's
/// degree must be set.
void put_zero(Json& object, const Degrees& degrees);

/// Sets `degrees` where the case has ranks.
void put_degrees(Json& object, const Case& asked);

/// As a program spells them.
Json ops_json(const std::vector<Op>& ops);

}  // namespace stageline::report
