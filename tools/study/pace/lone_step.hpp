// The pace of a flushed order, read off one step that begins on idle devices.
//
//   gpu0 |==== step 1 ====|==== step 2 ====|      P: the longest that a lane takes from its first
//   gpu1 |   == step 1 ==     == step 2 ==           start to its last end
//
// Step 2 repeats step 1 to the picosecond, P later, where every lane that starts at once is busy
// for all of P: then each first op begins P later, and nothing that follows is kept waiting by
// what step 1 left behind, for no lane, and no link, is still in use when step 2 comes to it.
#pragma once

#include <optional>

#include "sim/engine.hpp"
#include "sim/program.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

/// Whether the steps of such a program, one after another, wait for each other in lanes and on
/// links alone: a flush on which no other device waits, async messages, no copies, no clock.
bool steps_wait_in_lanes(const Program& program, const TaskGraph& graph);

/// Whether two lanes ever ask for a link at one moment. The task's number decides which of them is
/// served first, and with pipes in two directions that may change from step to step.
bool ask_at_once(const TaskGraph& graph, const TaskTimes& times);

/// P, of one such step; empty where a further step would begin otherwise.
std::optional<Time> lone_step(const TaskGraph& graph, const TaskTimes& times);

/// The same if links took no time.
std::optional<Time> lone_step_with_free_links(const TaskGraph& graph);

}  // namespace stageline
