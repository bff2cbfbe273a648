// Plans for models of so many layers that one simulation takes long: searched in groups of layers,
// and what is found simulated with all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/planner/search.hpp"

namespace stageline::planner {

/// How a large model is searched.
struct PlanGroups {
  int layers = 0;
  int groups = 0;  // 0: its layers one by one

  std::string note() const;
};

/// Throws UsageError where the model is too large for cuts that are given in layers, without a
/// budget.
PlanGroups groups_for(const PlanRequest& request);

struct WithAllLayers {
  Front front;
  std::optional<PlanMissing> missing{};  // of what lacks least
  std::int64_t judged = 0;
};

/// What a search in groups has found, simulated with all layers: with what its partitioner makes of
/// them, or with the cut of the groups. Where nothing fits, what lacks least. `asked`: without
/// groups.
WithAllLayers with_all_layers(Search& search, const PlanRequest& asked, const PlanGroups& in);

}  // namespace stageline::planner
