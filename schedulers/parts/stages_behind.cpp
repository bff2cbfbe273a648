#include "schedulers/parts/stages_behind.hpp"

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline {

std::vector<int> stages_behind(std::span<const StageEdge> edges, int stages) {
  std::vector<int> behind(as_size(stages));
  for (int s = stages - 1; s >= 0; --s) {
    for (const StageEdge& edge : edges) {
      if (edge.from == s) nth(behind, s) = std::max(nth(behind, s), nth(behind, edge.to) + 1);
    }
  }
  return behind;
}

}  // namespace stageline
