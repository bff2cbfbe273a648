#include "schedulers/parts/interleaved_plan.hpp"

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline {

StepLists interleaved_plan(const Problem& problem, int factor) {
  const auto devices = static_cast<int>(problem.devices.size());
  const int chunks = problem.placement.stages() / devices;
  StepLists plan;
  for (int r = 0; r < devices; ++r) {
    std::vector<Op> forwards;
    std::vector<Op> backwards;
    for (int first = 0; first < problem.microbatches; first += devices) {
      const int last = std::min(first + devices, problem.microbatches);
      for (int chunk = 0; chunk < chunks; ++chunk) {
        for (int i = first; i < last; ++i) {
          const auto m = static_cast<std::uint32_t>(i);
          forwards.push_back(op_of(OpKind::forward, r + chunk * devices, m));
          const int deepest_first = chunks - 1 - chunk;
          backwards.push_back(op_of(OpKind::input_grad, r + deepest_first * devices, m));
        }
      }
    }
    const int ahead = factor * (devices - 1 - r) + (chunks - 1) * devices;
    const std::size_t warm_up = std::min(as_size(ahead), forwards.size());
    std::vector<Op>& list = plan.emplace_back();
    for (std::size_t i = 0; i < forwards.size() + warm_up; ++i) {
      if (i < forwards.size()) list.push_back(forwards[i]);
      if (i >= warm_up) list.push_back(backwards[i - warm_up]);
    }
  }
  return plan;
}

}  // namespace stageline
