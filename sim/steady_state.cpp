#include "sim/steady_state.hpp"

#include <algorithm>
#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>
#include <map>
#include <tuple>
#include <utility>

namespace stageline {
namespace {

// What repeats: an op by kind, stage and part, and which one of the round it is.
using Key = std::tuple<OpKind, int, int, std::uint32_t>;
using Family = std::tuple<OpKind, int, int>;

Family family_of(Op op) { return {op.kind, op.stage, int{op.part}}; }

class Rounds {
 public:
  Rounds(const TaskGraph& graph, const TaskTimes& times, int microbatches, int round)
      : graph_(graph) {
    std::map<Family, std::uint32_t> numbers;  // updates have fewer than there are micro-batches
    for (const Op op : graph.op) {
      std::uint32_t& most = numbers[family_of(op)];
      most = std::max(most, op.microbatch + 1);
    }
    for (const auto& [family, count] : numbers) {
      const std::uint64_t in_round = std::uint64_t{count} * static_cast<std::uint64_t>(round);
      const auto all = static_cast<std::uint64_t>(microbatches);
      whole_ = whole_ && in_round >= all && in_round % all == 0;
      in_round_[family] = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, in_round / all));
    }
    // Counting begins at one moment for all, so that nobody waits for a round to come: whatever
    // starts from then on is waited for by what starts from then on.
    const auto middle = static_cast<std::uint32_t>(microbatches / round / 2 * round);
    Time begin{};
    for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
      const Op op = graph.op[t];
      if (op.kind == OpKind::forward && op.stage == 0 && op.microbatch == middle) {
        begin = start_of(graph, times, t);
      }
    }
    for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
      if (start_of(graph, times, t) < begin) continue;
      node_.try_emplace(key_of(t), 0);
      const std::int64_t number = count_of(t);
      const auto [first, unseen] = first_.try_emplace(key_of(t), number);
      if (!unseen) first->second = std::min(first->second, number);
    }
    std::uint32_t next = 0;
    for (auto& [key, node] : node_) node = next++;
  }

  bool whole() const { return whole_; }
  std::size_t nodes() const { return node_.size(); }

  // Nothing for what is over before the counting begins and never comes again.
  std::optional<std::uint32_t> node(std::uint32_t task) const {
    const auto found = node_.find(key_of(task));
    if (found == node_.end()) return std::nullopt;
    return found->second;
  }
  std::int64_t round(std::uint32_t task) const { return count_of(task) - first_.at(key_of(task)); }

 private:
  std::uint32_t in_round(std::uint32_t task) const {
    return in_round_.at(family_of(graph_.op[task]));
  }
  Key key_of(std::uint32_t task) const {
    const Op op = graph_.op[task];
    return {op.kind, op.stage, int{op.part}, op.microbatch % in_round(task)};
  }
  std::int64_t count_of(std::uint32_t task) const {
    return graph_.op[task].microbatch / in_round(task);
  }

  const TaskGraph& graph_;
  std::map<Family, std::uint32_t> in_round_;
  std::map<Key, std::uint32_t> node_;
  std::map<Key, std::int64_t> first_;  // round
  bool whole_ = true;
};

// Tasks that wait for each other: by need, by lane, by resource.
template <typename Visit>
void for_each_wait(const TaskGraph& graph, const TaskTimes& times, Visit visit) {
  const auto lag = [&](std::uint32_t t) { return graph.paths[graph.path_of[t]].lag; };
  for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
    for (std::uint32_t k = graph.need_begin[t]; k < graph.need_begin[t + 1]; ++k) {
      visit(graph.need[k], t, graph.duration[graph.need[k]] + lag(graph.need[k]));
    }
  }
  for (std::size_t l = 0; l + 1 < graph.lane_begin.size(); ++l) {
    for (std::uint32_t k = graph.lane_begin[l] + 1; k < graph.lane_begin[l + 1]; ++k) {
      const std::uint32_t before = graph.lane_task[k - 1];
      visit(before, graph.lane_task[k], graph.duration[before]);
    }
  }
  if (!shares_resources(graph)) return;
  std::vector<std::vector<std::uint32_t>> users(graph.resources.size());
  for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
    for (const std::uint32_t r : graph.paths[graph.path_of[t]].resources) users[r].push_back(t);
  }
  for (std::vector<std::uint32_t>& order : users) {
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(start_of(graph, times, a), a) < std::pair(start_of(graph, times, b), b);
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      visit(order[i - 1], order[i], graph.duration[order[i - 1]]);
    }
  }
}

__extension__ using Wide = __int128;

// A cycle whose ratio exceeds time / rounds, as edge numbers, or none: a positive cycle of the
// weights time_e · rounds − rounds_e · time (Bellman and Ford).
std::vector<std::size_t> better_cycle(const EventGraph& graph, const Period& period) {
  const std::size_t nodes = graph.op.size();
  std::vector<Wide> far(nodes, 0);
  std::vector<std::size_t> by(nodes, graph.edges.size());
  std::size_t last = nodes;
  for (std::size_t pass = 0; pass <= nodes; ++pass) {
    last = nodes;
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
      const EventGraph::Edge& edge = graph.edges[e];
      const Wide weight =
          Wide{edge.time.count()} * period.rounds - Wide{edge.rounds} * period.time.count();
      if (far[edge.from] + weight <= far[edge.to]) continue;
      far[edge.to] = far[edge.from] + weight;
      by[edge.to] = e;
      last = edge.to;
    }
    if (last == nodes) return {};
  }
  for (std::size_t i = 0; i < nodes; ++i) last = graph.edges[by[last]].from;  // now on the cycle
  std::vector<std::size_t> cycle;
  std::size_t at = last;
  do {
    cycle.push_back(by[at]);
    at = graph.edges[by[at]].from;
  } while (at != last);
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

Period summed(const EventGraph& graph, const std::vector<std::size_t>& cycle) {
  Period period{Time{}, 0, {}};
  for (const std::size_t e : cycle) {
    period.time += graph.edges[e].time;
    period.rounds += graph.edges[e].rounds;
    period.cycle.push_back(graph.op[graph.edges[e].from]);
  }
  return period;
}

// Howard's answer, in order. It may be one of several equals, and wrong in the last digits.
std::vector<std::size_t> howard(const EventGraph& graph) {
  using Weights =
      boost::property<boost::edge_weight_t, double,
                      boost::property<boost::edge_weight2_t, double,
                                      boost::property<boost::edge_index_t, std::size_t>>>;
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                      boost::no_property, Weights>;
  Graph g(graph.op.size());
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const EventGraph::Edge& edge = graph.edges[e];
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

}  // namespace

std::optional<EventGraph> event_graph(const TaskGraph& graph, const TaskTimes& times,
                                      int microbatches, int round) {
  constexpr std::int64_t looked_at = 3;
  if (round < 1 || microbatches / round < 2 * looked_at + 1) return std::nullopt;
  const Rounds rounds(graph, times, microbatches, round);
  if (!rounds.whole()) return std::nullopt;
  EventGraph result;
  result.op.resize(rounds.nodes());
  result.lane.resize(rounds.nodes());
  result.duration.resize(rounds.nodes());
  for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
    const auto node = rounds.node(t);
    if (!node || rounds.round(t) != 0) continue;
    result.op[*node] = graph.op[t];
    result.lane[*node] = graph.lane[t];
    result.duration[*node] = graph.duration[t];
  }
  std::array<std::vector<EventGraph::Edge>, looked_at> seen;
  bool forwards = true;
  for_each_wait(graph, times, [&](std::uint32_t from, std::uint32_t to, Time time) {
    const auto source = rounds.node(from);
    const auto target = rounds.node(to);
    if (!source || !target) return;
    const std::int64_t at = rounds.round(to);
    if (at < 0 || at >= looked_at) return;
    const std::int64_t apart = at - rounds.round(from);
    forwards = forwards && apart >= 0;
    seen[static_cast<std::size_t>(at)].push_back(
        {*source, *target, static_cast<std::uint32_t>(std::max<std::int64_t>(apart, 0)), time});
  });
  for (std::vector<EventGraph::Edge>& edges : seen) {
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }
  if (!forwards || seen[0] != seen[1] || seen[1] != seen[2]) return std::nullopt;
  result.edges = std::move(seen[0]);
  return result;
}

Period period_of(const EventGraph& graph) {
  Period period;
  if (graph.edges.empty()) return period;
  const std::vector<std::size_t> first = howard(graph);
  if (!first.empty()) period = summed(graph, first);
  while (true) {
    const std::vector<std::size_t> better = better_cycle(graph, period);
    if (better.empty()) return period;
    period = summed(graph, better);
  }
}

}  // namespace stageline
