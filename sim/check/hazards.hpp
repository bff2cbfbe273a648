// Messages that delay work of their device, and the cost of that. For sim/check/lint.cpp.
#pragma once

#include <vector>

#include "sim/check/check.hpp"
#include "sim/costs.hpp"

namespace stageline {

/// For a valid program that finishes: each RECV with work between it and its first reader, each
/// SEND with work between its producer and it, and the share of the makespan that moving it alone
/// to its place saves. `costs`: null for unit_costs(). Under `async` a RECV delays nothing, so its
/// cost is that under the strictest setting that does not deadlock, as a note. Moves that gain
/// nothing are notes, or left out where messages are async. Simulates as many moves as take a few
/// seconds.
std::vector<LintFinding> hazards(const Program& program, const Costs* costs, std::size_t most);

}  // namespace stageline
