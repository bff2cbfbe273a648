// The maximum cycle ratio of an event graph, exactly.
#include "sim/analysis/cycle_ratio.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>
#include <utility>

#include "sim/analysis/steady_state.hpp"

namespace stageline {
namespace {

constexpr std::uint32_t never = 0xffffffff;

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

// The cycle that Howard's algorithm finds, in order: one of several equal ones, up to rounding.
std::vector<std::size_t> howard(std::size_t nodes, const Edges& edges) {
  using Weights =
      boost::property<boost::edge_weight_t, double,
                      boost::property<boost::edge_weight2_t, double,
                                      boost::property<boost::edge_index_t, std::size_t>>>;
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                      boost::no_property, Weights>;
  Graph g(nodes);
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const EventGraph::Edge& edge = edges[e];
    boost::add_edge(
        edge.from, edge.to,
        Weights(static_cast<double>(edge.time.count()), {static_cast<double>(edge.rounds), {e}}),
        g);
  }
  std::vector<boost::graph_traits<Graph>::edge_descriptor> found;
  boost::maximum_cycle_ratio(g, boost::get(boost::vertex_index, g),
                             boost::get(boost::edge_weight, g), boost::get(boost::edge_weight2, g),
                             &found);
  std::vector<std::size_t> cycle;
  for (const auto& edge : found) cycle.push_back(boost::get(boost::edge_index, g, edge));
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

// A long round has few doors: nodes that wait for an earlier round. Every cycle is a chain of paths
// from door to door, and only the longest of each pair matters; so the search is among the doors.
//
//     round k   │ door ─►·─►·─►· │ door ─►·─►·        one edge per path: the longest path within
//               │ door ─►·─►·    │ door ─►·─►·─►·     the round, and the step into a later round
//
class Doors {
 public:
  explicit Doors(const EventGraph& graph) : graph_(graph), door_(graph.op.size(), never) {
    into_.resize(graph.op.size() + 1);
    for (const EventGraph::Edge& edge : graph.edges) {
      if (edge.rounds == 0) ++into_[edge.to + 1];
    }
    for (std::size_t n = 0; n < graph.op.size(); ++n) into_[n + 1] += into_[n];
    inner_.resize(into_.back());
    std::vector<std::size_t> next(into_.begin(), into_.end());
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
      const EventGraph::Edge& edge = graph.edges[e];
      if (edge.rounds == 0) {
        inner_[next[edge.to]++] = e;
        continue;
      }
      outer_.push_back(e);
      if (door_[edge.to] != never) continue;
      door_[edge.to] = static_cast<std::uint32_t>(doors_.size());
      doors_.push_back(edge.to);
    }
  }

  bool few() const { return doors_.size() * 8 < graph_.op.size(); }
  std::size_t size() const { return doors_.size(); }

  Edges ways() const {
    Edges ways;
    for (std::uint32_t door = 0; door < doors_.size(); ++door) {
      const std::vector<Time> far = from(door, nullptr);
      Edges own;
      for (const std::size_t e : outer_) {
        const EventGraph::Edge& edge = graph_.edges[e];
        if (far[edge.from] == unreached) continue;
        own.push_back({door, door_[edge.to], edge.rounds, far[edge.from] + edge.time, edge.wait});
      }
      // Of each pair of doors and number of rounds only the last, which is the longest.
      std::sort(own.begin(), own.end());
      for (std::size_t i = 0; i < own.size(); ++i) {
        const bool last =
            i + 1 == own.size() || own[i].to != own[i + 1].to || own[i].rounds != own[i + 1].rounds;
        if (last) ways.push_back(own[i]);
      }
    }
    return ways;
  }

  /// The edges of the graph on this path.
  std::vector<std::size_t> edges_of(const EventGraph::Edge& way) const {
    std::vector<std::size_t> by;
    const std::vector<Time> far = from(way.from, &by);
    for (const std::size_t e : outer_) {
      const EventGraph::Edge& edge = graph_.edges[e];
      if (door_[edge.to] != way.to || edge.rounds != way.rounds || far[edge.from] == unreached ||
          far[edge.from] + edge.time != way.time) {
        continue;
      }
      std::vector<std::size_t> edges{e};
      for (std::uint32_t at = edge.from; at != doors_[way.from]; at = graph_.edges[by[at]].from) {
        edges.push_back(by[at]);
      }
      std::reverse(edges.begin(), edges.end());
      return edges;
    }
    return {};
  }

 private:
  static constexpr Time unreached{-1};

  // The longest path within the round from a door to every node, and its last edge.
  std::vector<Time> from(std::uint32_t door, std::vector<std::size_t>* by) const {
    std::vector<Time> far(graph_.op.size(), unreached);
    if (by != nullptr) by->assign(graph_.op.size(), graph_.edges.size());
    far[doors_[door]] = Time{};
    for (std::size_t n = doors_[door] + 1; n < far.size(); ++n) {
      for (std::size_t i = into_[n]; i < into_[n + 1]; ++i) {
        const EventGraph::Edge& edge = graph_.edges[inner_[i]];
        if (far[edge.from] == unreached || far[edge.from] + edge.time <= far[n]) continue;
        far[n] = far[edge.from] + edge.time;
        if (by != nullptr) (*by)[n] = inner_[i];
      }
    }
    return far;
  }

  const EventGraph& graph_;
  std::vector<std::uint32_t> door_;   // by node
  std::vector<std::uint32_t> doors_;  // nodes
  std::vector<std::size_t> into_;     // CSR into inner_, by node
  std::vector<std::size_t> inner_;    // edges within a round, by target
  std::vector<std::size_t> outer_;    // edges into a later round
};

}  // namespace

std::vector<std::size_t> critical_edges(const EventGraph& graph) {
  const Doors doors(graph);
  if (!doors.few()) return best_cycle(graph.op.size(), graph.edges);
  const Edges ways = doors.ways();
  std::vector<std::size_t> cycle;
  for (const std::size_t way : best_cycle(doors.size(), ways)) {
    for (const std::size_t edge : doors.edges_of(ways[way])) cycle.push_back(edge);
  }
  return cycle;
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
