// The order of interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473) as a plan for the list
// scheduler: as many micro-batches as devices go through a chunk before the next chunk's turn,
// forwards from the first chunk, backwards from the last.
#pragma once

#include "schedulers/parts/list_schedule.hpp"

namespace stageline {

/// F and I of one step by device, stage k on device k mod devices: forwards of all chunks but one
/// and `factor` of each device that follows (2: Megatron-LM's), then one F and one I in turn.
StepLists interleaved_plan(const Problem& problem, int factor);

}  // namespace stageline
