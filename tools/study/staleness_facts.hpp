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

struct StreamFacts {
  std::vector<int> live;       // by stage, mini-batches
  std::vector<int> degree;     // by stage, updates: the staleness of the steady state
  double stale_share = 0;      // weights of stages with a degree above 0, of all weights
  double memory_increase = 0;  // peaks of all devices together over one device without pipeline
  int cycles = 0;              // of the whole program in lockstep, M + 2K; 0: another schedule
};
StreamFacts stream_facts(const Outcome& outcome);

}  // namespace stageline
