// The maximum cycle ratio of an event graph, exactly.
#include "sim/analysis/cycle_ratio.hpp"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>
#include <utility>

#include "sim/analysis/steady_state.hpp"

namespace stageline {
namespace {

constexpr std::uint32_t unseen = 0xffffffff;

// The edges of an event graph, or of the graph of its doors.
using Edges = std::vector<EventGraph::Edge>;

__extension__ using Wide = __int128;

struct Ratio {
  std::int64_t time = 0;
  std::int64_t rounds = 1;
};

Ratio ratio_of(const Edges& edges, const std::vector<std::size_t>& cycle) {
  Ratio ratio{0, 0};
  for (const std::size_t e : cycle) {
    ratio.time += edges[e].time.count();
    ratio.rounds += edges[e].rounds;
  }
  return ratio;
}

// A cycle of the edges `by`, through which each node was reached last, as edge numbers in order;
// empty if there is none.
std::vector<std::size_t> cycle_of(const Edges& edges, const std::vector<std::size_t>& by) {
  std::vector<std::size_t> seen_from(by.size(), by.size());
  for (std::size_t start = 0; start < by.size(); ++start) {
    std::size_t at = start;
    while (seen_from[at] == by.size() && by[at] != edges.size()) {
      seen_from[at] = start;
      at = edges[by[at]].from;
    }
    if (seen_from[at] != start || by[at] == edges.size()) continue;
    std::vector<std::size_t> cycle;
    std::size_t node = at;
    do {
      cycle.push_back(by[node]);
      node = edges[by[node]].from;
    } while (node != at);
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }
  return {};
}

// A cycle of a larger ratio, empty if there is none: a positive cycle of the weights
// time_e · rounds − rounds_e · time (Bellman and Ford).
std::vector<std::size_t> better_cycle(std::size_t nodes, const Edges& edges, Ratio than) {
  std::vector<Wide> far(nodes, 0);
  std::vector<std::size_t> by(nodes, edges.size());
  while (true) {
    bool farther = false;
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const EventGraph::Edge& edge = edges[e];
      const Wide weight = Wide{edge.time.count()} * than.rounds - Wide{edge.rounds} * than.time;
      if (far[edge.from] + weight <= far[edge.to]) continue;
      far[edge.to] = far[edge.from] + weight;
      by[edge.to] = e;
      farther = true;
    }
    if (!farther) return {};
    std::vector<std::size_t> cycle = cycle_of(edges, by);
    if (!cycle.empty()) return cycle;
  }
}

struct Weights {
  double time = 0;
  double rounds = 0;
  std::size_t edge = 0;
};

// The cycle that Howard's algorithm finds, in order: one of several equal ones, up to rounding. A
// compressed graph keeps the order of a node's edges; the iterators of Boost's adjacency list are
// too weak for the std::max_element in Boost's Howard, where the library looks.
std::vector<std::size_t> howard(std::size_t nodes, const Edges& edges) {
  using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, Weights>;
  std::vector<std::pair<std::size_t, std::size_t>> ends;
  std::vector<Weights> weights;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const EventGraph::Edge& edge = edges[e];
    ends.emplace_back(edge.from, edge.to);
    weights.push_back(
        {static_cast<double>(edge.time.count()), static_cast<double>(edge.rounds), e});
  }
  const Graph g(boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), weights.begin(),
                nodes);
  std::vector<boost::graph_traits<Graph>::edge_descriptor> found;
  boost::maximum_cycle_ratio(g, boost::get(boost::vertex_index, g), boost::get(&Weights::time, g),
                             boost::get(&Weights::rounds, g), &found);
  std::vector<std::size_t> cycle;
  for (const auto& edge : found) cycle.push_back(g[edge].edge);
  return cycle;
}

std::vector<std::size_t> best_cycle(std::size_t nodes, const Edges& edges) {
  std::vector<std::size_t> best = howard(nodes, edges);
  while (true) {
    const Ratio ratio = best.empty() ? Ratio{} : ratio_of(edges, best);
    std::vector<std::size_t> better = better_cycle(nodes, edges, ratio);
    if (better.empty()) return best;
    best = std::move(better);
  }
}

// The best cycle among those of the edges `by`, through which each node was reached last.
void improve(const Edges& edges, const std::vector<std::size_t>& by,
             std::vector<std::size_t>& best) {
  std::vector<std::uint32_t> seen_from(by.size(), unseen);
  for (std::uint32_t start = 0; start < by.size(); ++start) {
    std::uint32_t at = start;
    while (seen_from[at] == unseen && by[at] != edges.size()) {
      seen_from[at] = start;
      at = edges[by[at]].from;
    }
    if (seen_from[at] != start || by[at] == edges.size()) continue;
    std::vector<std::size_t> cycle;
    std::uint32_t node = at;
    do {
      cycle.push_back(by[node]);
      node = edges[by[node]].from;
    } while (node != at);
    const Ratio ratio = ratio_of(edges, cycle);
    const Ratio than = best.empty() ? Ratio{} : ratio_of(edges, best);
    if (Wide{ratio.time} * than.rounds <= Wide{than.time} * ratio.rounds) continue;
    std::reverse(cycle.begin(), cycle.end());
    best = std::move(cycle);
  }
}

// Few nodes of a long round wait for an earlier one, so few paths cross more than a few rounds:
//
//     round k   │ door ─►·─►·─►· │ door ─►·─►·        a sweep over the edges in their order walks
//               │ door ─►·─►·    │ door ─►·─►·─►·     all paths within a round
//
// Bellman and Ford's potentials with the ratio of the best cycle so far, kept when that ratio
// rises, are at rest after as many sweeps as the longest path that counts crosses rounds: two or
// three after a flush, and unseen more than there are doors.
std::vector<std::size_t> swept_cycle(std::size_t nodes, const Edges& edges) {
  std::vector<std::size_t> best;
  std::vector<std::size_t> by(nodes, edges.size());
  std::vector<Wide> far(nodes, 0);
  Ratio ratio;
  while (true) {
    bool farther = false;
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const EventGraph::Edge& edge = edges[e];
      const Wide reached =
          far[edge.from] + Wide{edge.time.count()} * ratio.rounds - Wide{edge.rounds} * ratio.time;
      if (reached <= far[edge.to]) continue;
      far[edge.to] = reached;
      by[edge.to] = e;
      farther = true;
    }
    if (!farther) return best;
    const Ratio before = ratio;
    improve(edges, by, best);
    if (!best.empty()) ratio = ratio_of(edges, best);
    if (Wide{ratio.time} * before.rounds == Wide{before.time} * ratio.rounds) continue;
    // Other weights: what was far under the old ones is only a start, and no edge led to it.
    std::fill(far.begin(), far.end(), 0);
    std::fill(by.begin(), by.end(), edges.size());
  }
}

bool few_doors(const EventGraph& graph) {
  std::vector<bool> door(graph.op.size(), false);
  for (const EventGraph::Edge& edge : graph.edges) {
    if (edge.rounds > 0) door[edge.to] = true;
  }
  return static_cast<std::size_t>(std::count(door.begin(), door.end(), true)) * 8 < door.size();
}

}  // namespace

std::vector<std::size_t> critical_edges(const EventGraph& graph) {
  const std::size_t nodes = graph.op.size();
  return few_doors(graph) ? swept_cycle(nodes, graph.edges) : best_cycle(nodes, graph.edges);
}

Period period_of(const EventGraph& graph) {
  Period period;
  if (graph.edges.empty()) return period;
  const std::vector<std::size_t> cycle = critical_edges(graph);
  if (cycle.empty()) return period;
  const Ratio ratio = ratio_of(graph.edges, cycle);
  period.time = Time{ratio.time};
  period.rounds = ratio.rounds;
  for (const std::size_t e : cycle) {
    const EventGraph::Edge& edge = graph.edges[e];
    period.cycle.push_back(
        {graph.op[edge.from], graph.lane[edge.from], edge.wait, edge.rounds, edge.time});
  }
  return period;
}

}  // namespace stageline
