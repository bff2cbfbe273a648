// The graph questions of sim/, answered by Boost.Graph behind plain types.
#pragma once

#include <utility>
#include <vector>

namespace stageline {

/// `order` holds all nodes, every edge leading forward, the smallest number first where there is a
/// choice; or `cycle` holds the nodes of one cycle, each leading to the next, and `order` is empty.
struct GraphOrder {
  std::vector<int> order;
  std::vector<int> cycle;
};
GraphOrder topological_order(int nodes, const std::vector<std::pair<int, int>>& edges);

}  // namespace stageline
