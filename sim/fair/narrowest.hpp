// Resources that all transfers cross alike, as the ports of a group that only its collectives use.
#pragma once

#include <vector>

#include "sim/task_graph.hpp"

namespace stageline {

/// By resource, whether it can limit a flow: it has a limit, and is the narrowest of those that
/// every path crosses with the same load (of equal ones the first). O(n log n) for the n entries of
/// all paths, if few paths cross each resource.
std::vector<bool> narrowest_resources(const TaskGraph& graph);

}  // namespace stageline
