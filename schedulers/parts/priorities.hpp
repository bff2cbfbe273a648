// Priority rules for the list scheduler: the smaller number goes first.
#pragma once

#include "schedulers/parts/list_schedule.hpp"

namespace stageline {

/// I or B before F; then the older micro-batch, then the later stage.
Rank backward_first();

/// F before I or B; then as above.
Rank forward_first();

/// What has the longest way to the end of the step before it: through other stages, or the stage's
/// later micro-batches, which wait for this one. (Messages, which depend on little else, are left
/// out.) O(micro-batches · (stages + edges)), time and memory.
Rank critical_path_first(const Problem& problem, bool split);

}  // namespace stageline
