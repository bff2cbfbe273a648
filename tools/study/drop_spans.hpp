// Makes an outcome as small as its tables: a comparison holds one for each row.
#pragma once

#include <vector>

#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// Reads off the spans and lists of ops what tables, JSON without timeline and notes need of them,
/// into Outcome::facts, and frees them: graph, times, timeline, idle intervals, critical path,
/// events of versions, the ops of the program. What stays grows with devices and stages alone.
void drop_spans(Outcome& outcome);

/// Spans, ops and tasks that the outcome has memory for; 0 behind drop_spans().
std::size_t held_spans(const Outcome& outcome);

/// Time on the critical path by kind of piece.
std::vector<PathShare> path_shares(const Outcome& outcome);

}  // namespace stageline
