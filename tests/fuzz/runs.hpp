// A run, and all that is derived from it, held against slow references.
#pragma once

#include "sim/costs.hpp"
#include "sim/engine.hpp"
#include "sim/program.hpp"

namespace stageline::fuzz {

/// Compiles and runs a complete program. Without shared links every span is when the reference of
/// tests/ says, to the picosecond; with them when the brute force does. Memory, metrics and the
/// critical path add up. Throws Deadlock.
void check_run(const Program& program, const Costs& costs);

/// The batched sweep with durations drawn from `seed`, held against sweep() by scenario.
void check_batch(const TaskGraph& graph, std::uint32_t seed);

}  // namespace stageline::fuzz
