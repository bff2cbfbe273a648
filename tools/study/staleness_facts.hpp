// What a schedule without flush does to weights and memory, in the words of the papers that have
// one: how many mini-batches live in a stage, what share of the weights is stale, how much memory
// it adds.
#pragma once

#include <string>
#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"
#include "tools/study/case.hpp"
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
  int cycles = 0;              // of the whole program in lockstep, M + 2K; 0: not such a schedule
};
StreamFacts stream_facts(const Outcome& outcome);

/// The facts as lines for people; with delays, windows and host memory where there are any. Empty
/// for a schedule with a flush and without host memory.
std::string stream_report(const Outcome& outcome);

/// That the schedule's rules were rebuilt, where they were: in every report of it. Empty: they were
/// not, or the program was given.
std::string rebuilt_note(const Case& asked);

/// What must be said beside the numbers: rules that were rebuilt, copies that cost nothing.
std::vector<std::string> stream_notes(const Case& asked, const Outcome& outcome);

/// "gpu0", "gpu0+gpu1" for replicas; with roles apart "F gpu0, B gpu2" or "F gpu0, I 40 % gpu0 +
/// 60 % gpu1, W gpu1".
std::string placed(const Program& program, int stage);

}  // namespace stageline
