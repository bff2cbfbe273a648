// Graph algorithms for sim/: Boost.Graph behind plain types.
#pragma once

#include <utility>
#include <vector>

namespace stageline {

/// `order` holds all nodes, with every edge leading forward and ties resolved to the smallest
/// number; or `cycle` holds the nodes of one cycle, each leading to the next, and `order` is empty.
struct GraphOrder {
  std::vector<int> order;
  std::vector<int> cycle;
};
GraphOrder topological_order(int nodes, const std::vector<std::pair<int, int>>& edges);

}  // namespace stageline
