// Messages that keep a device from work it could do, and what that costs. For sim/check/lint.cpp.
#pragma once

#include <vector>

#include "sim/check/check.hpp"
#include "sim/costs.hpp"

namespace stageline {

/// Of a valid program that finishes: each RECV with work between it and its first reader, each SEND
/// with work between its maker and it, and the part of the makespan that goes when it alone is
/// moved to where it belongs. `costs`: nothing for unit_costs(). Under `async` a RECV waits for
/// nothing, so what it would cost is told for the strictest setting that does not deadlock, as a
/// note. Moves that gain nothing are notes, or where messages are async not told; so many are
/// simulated as take a few seconds.
std::vector<LintFinding> hazards(const Program& program, const Costs* costs, std::size_t most);

}  // namespace stageline
