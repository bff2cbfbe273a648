// What a task of a run under fair sharing would take alone, of which the run's durations say
// nothing: they include what its neighbours took from it.
#pragma once

#include <cstdint>

#include "sim/task_graph.hpp"

namespace stageline {

/// A time that the task never falls below: of a run, its duration; of a run under fair sharing, a
/// flow's setup and its bytes at its own bandwidth, up to its duration, or what is left of a
/// duration if everything that slows had done so from begin to end. Rounded down. O(1).
Time shortest(const TaskGraph& graph, std::uint32_t task);

}  // namespace stageline
