// What the order of a step depends on beside memory: each stage's device, the times of its ops, and
// the ways of its results to other stages.
#pragma once

#include <vector>

#include "sim/problem.hpp"

namespace stageline {

/// From the F of a stage, or from its I (or B), to another stage.
struct Way {
  int stage = 0;
  bool over_a_link = false;
  Time wire{};     // the sender's link is busy
  Time latency{};  // from the end of that to the arrival
};

struct StageTimes {
  int device = 0;
  Time forward{};
  Time backward{};         // I, or B
  Time weight{};           // W
  std::vector<Way> to;     // of activations
  std::vector<Way> back;   // of gradients
  std::vector<int> needs;  // stages whose activations it reads
};

/// By stage; `split`: I and W apart. Stages have one device each.
std::vector<StageTimes> stage_times(const Problem& problem, bool split);

}  // namespace stageline
