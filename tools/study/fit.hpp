// Whether an outcome fits into memory, and how many samples a second it trains: what every answer
// to a case says, however short.
#pragma once

#include "sim/cluster.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// Sets the limits and the fit, by `costs` and `memory` of the outcome.
void set_fit(const Cluster& cluster, Outcome& outcome);

/// By micro-batches, their size, copies and step time, which is not 0.
double throughput_of(const Outcome& outcome);

}  // namespace stageline
