// What compute takes where devices or links are slower than usual, as the costs have it.
#pragma once

#include "cost_models/perturbation/perturbation.hpp"
#include "sim/costs.hpp"
#include "sim/program.hpp"
#include "sim/task_graph.hpp"
#include "tools/study/case.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline {

/// The slow items of one device that have a probability between 0 and 1, at most: each set of them
/// has its own times.
inline constexpr int most_slow_items = 10;

/// The times of those compute tasks of `graph`, compiled of the program and the costs, that an item
/// of the perturbation concerns; with_devices() has made it. A slow device computes slower, as with
/// --slow, and a rank of several devices as slow as the slowest of them. The blocking collectives
/// inside its ops take what they took, less what a slower F or B hides of ZeRO's gathers. Slow
/// links have their bandwidth divided, and the collectives that cross them are priced anew.
/// Throws UsageError where more than `most_slow_items` concern one device, and what pricing throws.
SlowTimes slow_times(const Perturbation& perturbation, const Case& asked, const Layout& layout,
                     const Costs& costs, const Program& program, const TaskGraph& graph);

}  // namespace stageline
