// The event graph of a run: which task waits for which, and over how many rounds.
#include "sim/analysis/steady_state.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::uint32_t no_round = 0xffffffff;

// Numbers the rounds of a run. Ops repeat by kind, stage, part and position in the round.
class Rounds {
 public:
  Rounds(const TaskGraph& graph, const TaskTimes& times, int microbatches, int round) {
    count_families(graph, microbatches, round);
    if (!whole_) return;
    // Rounds are counted from one moment for all ops, so that none waits for a later round: a task
    // that starts after that moment is only awaited by tasks that start after it, too.
    const auto middle = static_cast<std::uint32_t>(microbatches / round / 2 * round);
    Time begin{};
    for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
      const Op op = graph.op[t];
      if (op.kind == OpKind::forward && op.stage == 0 && op.microbatch == middle) {
        begin = start_of(graph, times, t);
      }
    }
    std::vector<std::uint32_t> first(keys_, no_round);  // by key: its first round
    round_of_.resize(graph.tasks());
    key_of_.resize(graph.tasks());
    for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
      const Op op = graph.op[t];
      const std::size_t f = family(op);
      round_of_[t] = op.microbatch / in_round_[f];
      key_of_[t] = first_key_[f] + op.microbatch % in_round_[f];
      if (start_of(graph, times, t) < begin) continue;
      first[key_of_[t]] = std::min(first[key_of_[t]], static_cast<std::uint32_t>(round_of_[t]));
    }
    for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
      if (first[key_of_[t]] == no_round) continue;
      round_of_[t] -= first[key_of_[t]];
      if (round_of_[t] == 0) first_tasks_.push_back(t);
    }
    // In order of time, so that a task comes after those of its round that it waits for.
    std::sort(first_tasks_.begin(), first_tasks_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(start_of(graph, times, a), a) < std::pair(start_of(graph, times, b), b);
    });
    node_.assign(keys_, no_round);
    for (std::uint32_t n = 0; n < first_tasks_.size(); ++n) node_[key_of_[first_tasks_[n]]] = n;
  }

  bool whole() const { return whole_; }
  /// By node, its task in round 0.
  const std::vector<std::uint32_t>& first_tasks() const { return first_tasks_; }
  /// `no_round` for a task that ends before the counting begins and has no repetition.
  std::uint32_t node(std::uint32_t task) const { return node_[key_of_[task]]; }
  std::int64_t round(std::uint32_t task) const { return round_of_[task]; }

 private:
  std::size_t family(Op op) const {
    return (as_size(op.kind) * stages_ + op.stage) * parts_ + op.part;
  }

  // How many ops of each family a round has: there may be fewer updates than micro-batches.
  void count_families(const TaskGraph& graph, int microbatches, int round) {
    for (const Op op : graph.op) {
      stages_ = std::max(stages_, std::size_t{op.stage} + 1);
      parts_ = std::max(parts_, std::size_t{op.part} + 1);
    }
    std::vector<std::int64_t> numbers(op_kinds * stages_ * parts_);
    for (const Op op : graph.op) {
      numbers[family(op)] = std::max(numbers[family(op)], std::int64_t{op.microbatch} + 1);
    }
    for (std::size_t f = 0; f < numbers.size(); ++f) {
      const std::int64_t count = numbers[f];
      const auto kind = static_cast<OpKind>(f / (stages_ * parts_));
      std::int64_t share = round;
      if (!counts_microbatches(kind)) {
        share = (2 * count * round + microbatches) / (2 * std::int64_t{microbatches});  // nearest
        // At both ends of the run there may be a few more or less.
        const std::int64_t off = std::abs(count * round - share * microbatches);
        whole_ = whole_ && (count == 0 || (share > 0 && off <= 2 * std::int64_t{round}));
      } else if (count == 0) {
        share = 0;
      }
      in_round_.push_back(static_cast<std::uint32_t>(share));
      first_key_.push_back(keys_);
      keys_ += static_cast<std::uint32_t>(share);
    }
  }

  std::size_t stages_ = 0;
  std::size_t parts_ = 0;
  std::vector<std::uint32_t> in_round_;   // by family
  std::vector<std::uint32_t> first_key_;  // by family
  std::uint32_t keys_ = 0;
  std::vector<std::uint32_t> key_of_;   // by task
  std::vector<std::int64_t> round_of_;  // by task
  std::vector<std::uint32_t> node_;     // by key
  std::vector<std::uint32_t> first_tasks_;
  bool whole_ = true;
};

// Which task waits for which: by need, by lane, by resource.
class Waits {
 public:
  Waits(const TaskGraph& graph, const TaskTimes& times)
      : graph_(graph), in_lane_(graph.tasks(), no_round) {
    for (std::size_t l = 0; l + 1 < graph.lane_begin.size(); ++l) {
      for (std::uint32_t k = graph.lane_begin[l] + 1; k < graph.lane_begin[l + 1]; ++k) {
        in_lane_[graph.lane_task[k]] = graph.lane_task[k - 1];
      }
    }
    if (is_fair(graph) || !shares_resources(graph)) return;
    std::vector<std::vector<std::uint32_t>> users(graph.resources.size());
    for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
      for (const std::uint32_t r : graph.paths[graph.path_of[t]].resources) users[r].push_back(t);
    }
    for (std::vector<std::uint32_t>& order : users) {
      std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(start_of(graph, times, a), a) < std::pair(start_of(graph, times, b), b);
      });
      for (std::size_t i = 1; i < order.size(); ++i) turns_.push_back({order[i], order[i - 1]});
    }
    std::sort(turns_.begin(), turns_.end());
  }

  template <typename Visit>
  void of(std::uint32_t task, Visit visit) const {
    const Time head_start = graph_.paths[graph_.path_of[task]].head_start;
    for (std::uint32_t k = graph_.need_begin[task]; k < graph_.need_begin[task + 1]; ++k) {
      const std::uint32_t need = graph_.need[k];
      const Time available = graph_.duration[need] + graph_.paths[graph_.path_of[need]].lag;
      visit(need, ready_ahead(available, Time{}, head_start), Wait::need);
    }
    const std::uint32_t before = in_lane_[task];
    if (before != no_round) visit(before, graph_.duration[before], Wait::lane);
    const std::pair<std::uint32_t, std::uint32_t> least{task, 0};
    for (auto turn = std::lower_bound(turns_.begin(), turns_.end(), least);
         turn != turns_.end() && turn->first == task; ++turn) {
      visit(turn->second, graph_.duration[turn->second], Wait::resource);
    }
  }

 private:
  const TaskGraph& graph_;
  std::vector<std::uint32_t> in_lane_;  // by task: the one before it
  // On a resource: a task and the one before it.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> turns_;
};

// Whether the turns of every lane are one cycle through all its ops, of one round.
bool lanes_go_round(const EventGraph& events) {
  // By node: the edge from the one before it in the lane.
  std::vector<std::size_t> before(events.op.size(), no_round);
  for (std::size_t e = 0; e < events.edges.size(); ++e) {
    if (events.edges[e].wait == Wait::lane) before[events.edges[e].to] = e;
  }
  std::vector<std::size_t> ops;  // by lane
  for (const std::uint16_t lane : events.turn) {
    if (lane >= ops.size()) ops.resize(std::size_t{lane} + 1);
    ++ops[lane];
  }
  std::vector<bool> seen(events.op.size(), false);
  for (std::size_t start = 0; start < events.op.size(); ++start) {
    if (seen[start]) continue;
    std::size_t length = 0;
    std::uint32_t rounds = 0;
    std::size_t node = start;
    while (!seen[node]) {
      seen[node] = true;
      if (before[node] == no_round) return false;
      const EventGraph::Edge& edge = events.edges[before[node]];
      rounds += edge.rounds;
      node = edge.from;
      ++length;
    }
    if (node != start || rounds != 1 || length != ops[events.turn[start]]) return false;
  }
  return true;
}

}  // namespace

std::string_view name(Wait wait) {
  switch (wait) {
    case Wait::need:
      return "need";
    case Wait::lane:
      return "lane";
    case Wait::resource:
      return "link";
  }
  return "";
}

std::optional<EventGraph> event_graph(const TaskGraph& graph, const TaskTimes& times,
                                      int microbatches, int round) {
  if (round < 1 || microbatches / round < 3) return std::nullopt;
  const std::int64_t looked_at = microbatches / round < 7 ? 2 : 3;
  const Rounds rounds(graph, times, microbatches, round);
  if (!rounds.whole()) return std::nullopt;
  const std::vector<std::uint32_t>& first = rounds.first_tasks();
  const std::size_t nodes = first.size();
  std::vector<std::uint32_t> task(nodes * as_size(looked_at), no_round);
  for (std::uint32_t t = 0; t < graph.tasks(); ++t) {
    if (rounds.node(t) == no_round || rounds.round(t) < 0 || rounds.round(t) >= looked_at) continue;
    task[as_size(rounds.round(t)) * nodes + rounds.node(t)] = t;
  }
  const Waits waits(graph, times);
  bool backwards = false;
  const auto edges_into = [&](std::uint32_t to, std::vector<EventGraph::Edge>& edges) {
    edges.clear();
    waits.of(to, [&](std::uint32_t from, Time time, Wait wait) {
      if (rounds.node(from) == no_round) return;
      const std::int64_t apart = rounds.round(to) - rounds.round(from);
      backwards = backwards || apart < 0;
      edges.push_back({rounds.node(from), rounds.node(to),
                       static_cast<std::uint32_t>(std::max<std::int64_t>(apart, 0)), time, wait});
    });
    if (!std::is_sorted(edges.begin(), edges.end())) std::sort(edges.begin(), edges.end());
  };
  EventGraph result;
  std::vector<EventGraph::Edge> own;
  std::vector<EventGraph::Edge> again;
  for (std::size_t n = 0; n < nodes; ++n) {
    result.op.push_back(graph.op[first[n]]);
    result.lane.push_back(graph.lanes[graph.lane[first[n]]]);
    result.turn.push_back(graph.lane[first[n]]);
    result.path.push_back(graph.path_of[first[n]]);
    result.duration.push_back(graph.duration[first[n]]);
    edges_into(first[n], own);
    for (std::size_t k = 1; k < as_size(looked_at); ++k) {
      const std::uint32_t later = task[k * nodes + n];
      if (later == no_round) return std::nullopt;
      edges_into(later, again);
      if (own != again || backwards) return std::nullopt;
    }
    result.edges.insert(result.edges.end(), own.begin(), own.end());
  }
  if (!lanes_go_round(result)) return std::nullopt;
  return result;
}

EventGraph with_free_links(EventGraph events) {
  const auto sent = [&](std::uint32_t node) { return is_communication(events.lane[node].kind); };
  std::vector<EventGraph::Edge>& edges = events.edges;
  const auto in_turn = [](const EventGraph::Edge& edge) { return edge.wait == Wait::resource; };
  edges.erase(std::remove_if(edges.begin(), edges.end(), in_turn), edges.end());
  for (EventGraph::Edge& edge : edges) {
    if (sent(edge.from)) {
      edge.time = Time{};
    } else if (sent(edge.to) && edge.wait == Wait::need) {
      edge.time = events.duration[edge.from];  // without a head start
    }
  }
  for (std::uint32_t n = 0; n < events.op.size(); ++n) {
    if (sent(n)) events.duration[n] = Time{};
  }
  return events;
}

}  // namespace stageline
