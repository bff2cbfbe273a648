#include "tools/study/run/steps.hpp"

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline {

Program beginning_of(const Program& program, int steps) {
  Program shorter = program;
  if (steps == program.steps) return shorter;
  shorter.steps = steps;
  const std::uint32_t microbatches = shorter.total_microbatches();
  const auto updates = static_cast<std::uint32_t>(steps);
  for (std::vector<Op>& list : shorter.ops) {
    const auto later = [&](Op op) {
      return op.microbatch >= (counts_microbatches(op.kind) ? microbatches : updates);
    };
    list.erase(std::remove_if(list.begin(), list.end(), later), list.end());
  }
  return shorter;
}

Program repeated(const Program& program, int times) {
  Program longer = program;
  longer.steps *= times;
  const std::uint32_t microbatches = program.total_microbatches();
  const auto updates = static_cast<std::uint32_t>(program.steps);
  for (std::vector<Op>& list : longer.ops) {
    const std::size_t once = list.size();
    list.reserve(once * as_size(times));
    for (std::uint32_t before = 1; before < static_cast<std::uint32_t>(times); ++before) {
      for (std::size_t i = 0; i < once; ++i) {
        Op op = list[i];
        op.microbatch += before * (counts_microbatches(op.kind) ? microbatches : updates);
        list.push_back(op);
      }
    }
  }
  return longer;
}

}  // namespace stageline
