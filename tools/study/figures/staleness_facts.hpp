// What a schedule without flush does to weights and memory, in the terms of the papers: how many
// mini-batches are in flight in a stage, what share of the weights is stale, how much memory the
// schedule adds.
#pragma once

#include <string>
#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// By stage, the most micro-batches between the start of F and the end of their backward at once.
/// O(spans).
std::vector<int> live_microbatches(const Program& program, const Timeline& timeline);

/// An outcome behind drop_spans() has those of asynchronous schedules alone.
StreamFacts stream_facts(const Outcome& outcome);

}  // namespace stageline
