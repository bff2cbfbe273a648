// Plans for models of so many layers that one simulation takes long: searched in groups of layers,
// and what is found simulated with all of them.
#pragma once

#include <string>

#include "tools/planner/search.hpp"

namespace stageline {

/// How a large model is searched.
struct PlanGroups {
  int layers = 0;
  int groups = 0;  // 0: its layers one by one

  std::string note() const;
};

/// Throws UsageError where the model is too large for cuts that are given in layers, without a
/// budget.
PlanGroups groups_for(const PlanRequest& request);

/// What a search in groups has found, simulated with all layers, with the cut of the groups and
/// with what its partitioner makes of the layers. `asked`: without groups. Counts what it
/// simulates.
Front with_all_layers(Search& search, const PlanRequest& asked, const PlanGroups& in,
                      PlanProgress& counts);

}  // namespace stageline
