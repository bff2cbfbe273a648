// Makes an outcome as small as its tables: a comparison holds one for each row.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// Reads off the spans, lists of ops and costs what tables, JSON without timeline and notes need of
/// them, into Outcome::facts, and frees them: graph, times, timeline, idle intervals, critical
/// path, the cycle of the pace, events of versions, the ops of the program, the costs but for the
/// names of hosts. What stays grows with devices and stages alone.
void drop_spans(Outcome& outcome);

/// Spans, ops, tasks and costs that the outcome has memory for; 0 behind drop_spans().
std::size_t held_spans(const Outcome& outcome);

/// The figures of a stage's costs.
StageFigures stage_figures(const Outcome& outcome, std::size_t stage);

/// Time on the critical path by kind of piece.
std::vector<PathShare> path_shares(const Outcome& outcome);

}  // namespace stageline
