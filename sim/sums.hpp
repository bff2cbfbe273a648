// Rejects cases whose sums would not fit into 64 bits, before anything is added up.
#pragma once

#include <cstdint>

#include "sim/costs.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// Throws UsageError, with the numbers, where `microbatches` micro-batches (of all steps) may last
/// longer than `longest_run` if all computation and communication is serial, or may need more than
/// `most_bytes_held` if nothing is ever freed; and where one message alone takes longer than that.
/// Schedulers and engines never exceed these sums. O(stages + edges × replicas).
void check_sums(const Costs& costs, const Placement& placement, std::int64_t microbatches,
                std::int64_t steps);

}  // namespace stageline
