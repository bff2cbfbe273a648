// What would not fit into 64 bits is refused before anything is added up.
#pragma once

#include <cstdint>

#include "sim/costs.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// Throws UsageError, with the numbers, where `microbatches` micro-batches (of all steps) may last
/// longer than `longest_run` when all that is computed and sent is done one after the other, or may
/// need more than `most_bytes_held` when nothing is ever freed; and where one message alone takes
/// longer than that. Schedulers and engines add up no more. O(stages + edges × replicas).
void check_sums(const Costs& costs, const Placement& placement, std::int64_t microbatches,
                std::int64_t steps);

}  // namespace stageline
