// In which order a device of a looped placement takes its forwards: micro-batches go in groups, a
// group through the device's first chunk, then through its second, and so on. Backwards take the
// chunks the other way round.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline {

/// The chunk of a forward, among those of its device, and its micro-batch within the step.
struct LoopedTurn {
  int chunk = 0;
  int microbatch = 0;
};

/// All forwards of a device, in their order. The last group may be smaller than the others.
inline std::vector<LoopedTurn> looped_turns(int microbatches, int group, int chunks) {
  std::vector<LoopedTurn> all;
  all.reserve(as_size(microbatches) * as_size(chunks));
  for (int first = 0; first < microbatches; first += group) {
    const int end = std::min(first + group, microbatches);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int m = first; m < end; ++m) all.push_back({chunk, m});
    }
  }
  return all;
}

}  // namespace stageline
