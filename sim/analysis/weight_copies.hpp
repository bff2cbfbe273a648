// The copies of a stage's weights, and what uses each of them.
#pragma once

#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

/// A stage on one of its devices: its compute spans, in order. If another device updates the
/// weights, their arrivals are among them as updates.
struct WeightCopy {
  int device = 0;
  std::vector<Span> spans;
  bool comes_by_message = false;  // into room that is there all the time
  std::vector<Span> sends;        // SENDs that read the weights here
};

/// By stage, the copies of its weights. With split roles, the copy that F reads is the first.
/// Linear in the spans, except for sorting arrivals.
std::vector<std::vector<WeightCopy>> weight_copies(const Program& program,
                                                   const Timeline& timeline);

}  // namespace stageline
