// Is the derived period of a repeating program the one that simulation converges to?
#include "sim/steady_state.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/make.hpp"
#include "tests/needs_table.hpp"

namespace stageline {
namespace {

using test::Ran;

// Nodes called 0F0, 1F0, …
EventGraph events(std::size_t nodes, std::vector<EventGraph::Edge> edges) {
  EventGraph graph;
  for (std::size_t i = 0; i < nodes; ++i) {
    graph.op.push_back(test::op(OpKind::forward, static_cast<int>(i), 0));
  }
  graph.edges = std::move(edges);
  return graph;
}

std::string words(const Period& period) {
  std::string text;
  for (const Op op : period.cycle) text += (text.empty() ? "" : " ") + print(op);
  return text;
}

// Of a run of so many micro-batches.
std::optional<Period> derived(const Ran& ran, int microbatches, int round) {
  const std::optional<EventGraph> graph = event_graph(ran.graph, ran.times, microbatches, round);
  if (!graph) return std::nullopt;
  return period_of(*graph);
}

Time makespan_of(const std::string& schedule, int devices, const Costs& costs, int microbatches) {
  return makespan(test::run_schedule(schedule, devices, costs, microbatches).times);
}

}  // namespace

TEST_CASE("the period is the largest ratio of time to rounds over the cycles") {
  CHECK(period_of(events(1, {})).time == Time{0});
  CHECK(period_of(events(2, {{0, 1, 0, Time{5}}})).cycle.empty());  // no cycle
  const Period own = period_of(events(1, {{0, 0, 1, Time{7}}}));
  CHECK(own.time == Time{7});
  CHECK(own.rounds == 1);
  // 0→0 takes 4 a round; 0→1→0 takes 9 over 2 rounds, 4.5.
  const Period two = period_of(
      events(2, {{0, 0, 1, Time{4}}, {0, 1, 0, Time{6}}, {1, 0, 2, Time{3}}, {1, 1, 1, Time{2}}}));
  CHECK(two.time == Time{9});
  CHECK(two.rounds == 2);
  CHECK((words(two) == "0F0 1F0" || words(two) == "1F0 0F0"));
}

TEST_CASE("the period equals the best of all simple cycles of small random graphs") {
  std::mt19937 random(131);
  const auto below = [&](int limit) {
    return static_cast<std::uint32_t>(random() % static_cast<std::uint32_t>(limit));
  };
  for (int i = 0; i < 300; ++i) {
    const std::uint32_t nodes = 2 + below(4);
    std::vector<EventGraph::Edge> edges;
    for (std::uint32_t from = 0; from < nodes; ++from) {
      for (std::uint32_t to = 0; to < nodes; ++to) {
        if (below(3) == 0) continue;
        // Back edges have rounds, so that every cycle has one.
        edges.push_back({from, to, from < to ? below(2) : 1 + below(3), Time{below(100)}});
      }
    }
    const EventGraph graph = events(nodes, edges);
    double best = 0;
    std::vector<bool> used(nodes, false);
    const auto walk = [&](auto& self, std::uint32_t start, std::uint32_t at, double time,
                          double rounds) -> void {
      for (const EventGraph::Edge& edge : graph.edges) {
        if (edge.from != at) continue;
        const double t = time + static_cast<double>(edge.time.count());
        const double r = rounds + edge.rounds;
        if (edge.to == start) best = std::max(best, t / r);
        if (edge.to <= start || used[edge.to]) continue;
        used[edge.to] = true;
        self(self, start, edge.to, t, r);
        used[edge.to] = false;
      }
    };
    for (std::uint32_t start = 0; start < nodes; ++start) walk(walk, start, start, 0, 0);
    const Period period = period_of(graph);
    CHECK(static_cast<double>(period.time.count()) / static_cast<double>(period.rounds) ==
          doctest::Approx(best).epsilon(1e-12));
  }
}

TEST_CASE("PipeDream's derived period is what every further mini-batch adds, on any stages") {
  std::mt19937 random(132);
  for (int i = 0; i < 40; ++i) {
    const int S = 1 + static_cast<int>(random() % 6);
    CAPTURE(S);
    const Costs costs = test::random_costs(random, S, S, false);
    const int n = 400;
    const Ran ran = test::run_schedule("pipedream", S, costs, n);
    const std::optional<Period> period = derived(ran, n, 1);
    REQUIRE(period);
    REQUIRE(period->rounds >= 1);
    CAPTURE(words(*period));
    const int more = static_cast<int>(period->rounds) * 6;
    CHECK(makespan_of("pipedream", S, costs, n + more) - makespan(ran.times) == 6 * period->time);
  }
}

TEST_CASE("so it is with replicated stages, where it is more than the load alone") {
  for (const auto& [plan, stages, workers, round] :
       {std::tuple("2-1", 2, 3, 2), std::tuple("1-2", 2, 3, 2), std::tuple("2-1-1", 3, 4, 2),
        std::tuple("1-2-1", 3, 4, 2), std::tuple("3-2", 2, 5, 6)}) {
    const std::string schedule = std::string("pipedream:replicas=") + plan;
    CAPTURE(schedule);
    const Costs costs = uniform_costs(stages, workers, Time{4}, Time{4}, Time{4});
    const int n = 60 * round;
    const Ran ran = test::run_schedule(schedule, workers, costs, n);
    const std::optional<Period> period = derived(ran, n, round);
    REQUIRE(period);
    const int more = static_cast<int>(period->rounds) * round * 4;
    CHECK(makespan_of(schedule, workers, costs, n + more) - makespan(ran.times) ==
          4 * period->time);
  }
}

TEST_CASE("the cycle of a balanced pipeline is one device's forward and backward") {
  const Costs costs = uniform_costs(3, 3, Time{1}, Time{1}, Time{1});
  const Ran ran = test::run_schedule("pipedream", 3, costs, 60);
  const std::optional<Period> period = derived(ran, 60, 1);
  REQUIRE(period);
  CHECK(period->time == 3 * period->rounds * Time{1});
}

TEST_CASE("a flushed step repeats too, with the step as its round") {
  std::mt19937 random(133);
  for (int i = 0; i < 10; ++i) {
    const int S = 2 + static_cast<int>(random() % 3);
    const Costs costs = test::random_costs(random, S, S, false);
    const int m = 4;
    const int steps = 9;
    const Ran ran = test::run_schedule("1f1b", S, costs, m, steps);
    const std::optional<Period> period = derived(ran, m * steps, m);
    REQUIRE(period);
    const Ran longer =
        test::run_schedule("1f1b", S, costs, m, steps + 2 * static_cast<int>(period->rounds));
    CHECK(makespan(longer.times) - makespan(ran.times) == 2 * period->time);
  }
}

TEST_CASE("what is too short to repeat, or whose round is another, has no event graph") {
  const Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1});
  const Ran ran = test::run_schedule("pipedream", 2, costs, 6);
  CHECK_FALSE(event_graph(ran.graph, ran.times, 6, 1));
  CHECK_FALSE(event_graph(ran.graph, ran.times, 6, 0));
  const Ran replicated = test::run_schedule("pipedream:replicas=2-1", 3,
                                            uniform_costs(2, 3, Time{1}, Time{1}, Time{1}), 80);
  CHECK_FALSE(event_graph(replicated.graph, replicated.times, 80, 1));
}

}  // namespace stageline
