// Makes an outcome as small as its tables: a comparison holds one for each row.
#pragma once

#include <cstddef>

#include "tools/study/outcome.hpp"

namespace stageline {

/// Frees graph, times, timeline, idle intervals, critical path, the cycle of the pace, events of
/// versions, the ops of the program, the costs but for the names of hosts. What stays grows with
/// devices and stages alone, and Outcome::figures with it.
void drop_spans(Outcome& outcome);

/// Spans, ops, tasks and costs that the outcome has memory for; 0 behind drop_spans().
std::size_t held_spans(const Outcome& outcome);

}  // namespace stageline
