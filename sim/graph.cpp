// Topological order and cycles of a graph, by Boost.Graph.
#include "sim/graph.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <functional>
#include <queue>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

// One cycle of the graph, found by walking inside a strong component that has more than one node
// (or a node with an edge to itself) until a node repeats.
std::vector<int> a_cycle(const Graph& graph) {
  const std::size_t nodes = boost::num_vertices(graph);
  std::vector<std::size_t> component(nodes);
  const std::size_t components = boost::strong_components(
      graph, boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, graph)));
  std::vector<std::size_t> size(components);
  for (const std::size_t c : component) ++size[c];
  for (std::size_t start = 0; start < nodes; ++start) {
    if (size[component[start]] == 1 && !boost::edge(start, start, graph).second) continue;
    std::vector<int> walk;
    std::vector<int> seen_at(nodes, -1);
    std::size_t node = start;
    while (seen_at[node] < 0) {
      seen_at[node] = static_cast<int>(walk.size());
      walk.push_back(static_cast<int>(node));
      for (auto [edge, end] = boost::out_edges(node, graph); edge != end; ++edge) {
        const std::size_t next = boost::target(*edge, graph);
        if (component[next] != component[node]) continue;
        node = next;
        break;
      }
    }
    walk.erase(walk.begin(), walk.begin() + seen_at[node]);
    return walk;
  }
  return {};
}

}  // namespace

GraphOrder topological_order(int nodes, const std::vector<std::pair<int, int>>& edges) {
  Graph graph(as_size(nodes));
  for (const auto& [from, to] : edges) {
    boost::add_edge(as_size(from), as_size(to), graph);
  }
  // boost::topological_sort does not define ties; smallest first keeps a file's own order.
  std::vector<std::size_t> waiting(as_size(nodes));
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t node = 0; node < waiting.size(); ++node) {
    waiting[node] = boost::in_degree(node, graph);
    if (waiting[node] == 0) ready.push(static_cast<int>(node));
  }
  GraphOrder result;
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    result.order.push_back(node);
    for (auto [edge, end] = boost::out_edges(as_size(node), graph); edge != end; ++edge) {
      const std::size_t next = boost::target(*edge, graph);
      if (--waiting[next] == 0) ready.push(static_cast<int>(next));
    }
  }
  if (result.order.size() != waiting.size()) {
    result.order.clear();
    result.cycle = a_cycle(graph);
  }
  return result;
}

}  // namespace stageline
