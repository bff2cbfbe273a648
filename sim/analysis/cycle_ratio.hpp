// The critical cycle of an event graph as edges.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/analysis/steady_state.hpp"

namespace stageline {

/// The edges, as indices and in order, of a cycle with the maximum ratio of time to rounds: that of
/// period_of(). Empty where no cycle takes time. Times are at least 0.
std::vector<std::size_t> critical_edges(const EventGraph& graph);

}  // namespace stageline
