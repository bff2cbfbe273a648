// How many micro-batches each stage has in flight when all run through the pipeline at one pace:
// the time between a stage's F and its W over the time that the busiest device takes for a
// micro-batch (Little's law). A device of several chunks that bounds each of them so leaves room
// for what comes back.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/problem.hpp"

namespace stageline {

/// By stage, at least 1; for passages from as fast as can be to several times as long, each outcome
/// once, the fewest first. Edges that skip stages are left out. O(stages + edges) each.
std::vector<std::vector<std::uint32_t>> in_flight_counts(const Problem& problem);

}  // namespace stageline
