// Whether an outcome fits into memory, how many samples a second it trains and how long its devices
// are idle: what every answer to a case says, however short.
#pragma once

#include "sim/cluster.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// Sets the limits and the fit, by `costs` and `memory` of the outcome.
void set_fit(const Cluster& cluster, Outcome& outcome);

/// By micro-batches, their size, copies and step time, which is not 0.
double throughput_of(const Outcome& outcome);

/// Compute time of all devices in one step of the program, by the durations of the run. Updates by
/// their rate and mean duration: a round of replicas need not end where the program does.
Time busy_in_a_step(const Program& program, const TaskGraph& graph);

/// Outcome::bubble_fraction. `step` is not 0.
double bubble_of(Time step, int devices, Time busy);

}  // namespace stageline
