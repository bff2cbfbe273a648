// Computing that a schedule repeats to hold less memory.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/study/outcome.hpp"

namespace stageline {

/// The share of all devices' time in a step that goes into running forwards again: busy time, and
/// so no part of the bubble, but no progress either. A recompute that overlaps with another op
/// counts as that op's time. 0 where a step takes no time.
double recompute_fraction(const Outcome& outcome);

/// By stage, the R of the program.
std::vector<std::int64_t> repeats_by_stage(const Outcome& outcome);

}  // namespace stageline
