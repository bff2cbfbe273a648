// Is the derived period of a repeating program the one that simulation converges to?
#include "sim/analysis/steady_state.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/schedules/needs_table.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"

namespace stageline::steady_state_tests {
namespace {

using test::Ran;

// Nodes called 0F0, 1F0, …
EventGraph events(std::size_t nodes, std::vector<EventGraph::Edge> edges) {
  EventGraph graph;
  for (std::size_t i = 0; i < nodes; ++i) {
    graph.op.push_back(test::op(OpKind::forward, static_cast<int>(i), 0));
    graph.lane.emplace_back();
  }
  graph.edges = std::move(edges);
  return graph;
}

std::string words(const Period& period) {
  std::string text;
  for (const Turn& turn : period.cycle) text += (text.empty() ? "" : " ") + print(turn.op);
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
  const Ran ran = test::run_schedule("pipedream", 2, costs, 2);
  CHECK_FALSE(event_graph(ran.graph, ran.times, 2, 1));
  CHECK_FALSE(event_graph(ran.graph, ran.times, 2, 0));
  const Ran replicated = test::run_schedule("pipedream:replicas=2-1", 3,
                                            uniform_costs(2, 3, Time{1}, Time{1}, Time{1}), 80);
  CHECK_FALSE(event_graph(replicated.graph, replicated.times, 80, 1));
}

TEST_CASE("a long round, whose cycle is sought among its doors, gives what many short ones give") {
  // The same program read as rounds of 1 and of 20 mini-batches; 20 make few doors of many nodes.
  std::mt19937 random(134);
  for (int i = 0; i < 20; ++i) {
    const Costs costs = test::random_costs(random, 4, 4, false);
    const Ran ran = test::run_schedule("pipedream", 4, costs, 200);
    const std::optional<Period> one = derived(ran, 200, 1);
    const std::optional<Period> twenty = derived(ran, 200, 20);
    REQUIRE(one);
    REQUIRE(twenty);
    CHECK(20 * one->time * twenty->rounds == twenty->time * one->rounds);
    Time along{};
    std::int64_t rounds = 0;
    for (const Turn& turn : twenty->cycle) {
      along += turn.time;
      rounds += turn.rounds;
    }
    CHECK(along == twenty->time);
    CHECK(rounds == twenty->rounds);
  }
}

TEST_CASE("with free links the event graph has the period of the same program without transfers") {
  int seen = 0;
  std::mt19937 random(135);
  for (int i = 0; i < 20; ++i) {
    Costs costs = test::random_costs(random, 4, 4, true);
    const Ran ran = test::run_schedule("pipedream", 4, costs, 100);
    const std::optional<EventGraph> events = event_graph(ran.graph, ran.times, 100, 1);
    if (!events) continue;  // messages that queue
    ++seen;
    costs.network = uniform_costs(4, 4, Time{}, Time{}, Time{}).network;
    const std::optional<Period> free =
        derived(test::run_schedule("pipedream", 4, costs, 100), 100, 1);
    REQUIRE(free);
    const Period period = period_of(with_free_links(*events));
    CHECK(period.time * free->rounds == free->time * period.rounds);
  }
  CHECK(seen >= 10);
}

TEST_CASE("straight PipeDream's derived period is its slowest stage's F + B + U") {
  std::mt19937 random(136);
  for (int S = 1; S <= 7; ++S) {
    CAPTURE(S);
    const Costs costs = test::random_costs(random, S, S, false);
    const std::optional<Period> period =
        derived(test::run_schedule("pipedream", S, costs, 60), 60, 1);
    REQUIRE(period);
    Time slowest{};
    for (const StageCosts& stage : costs.stage) {
      slowest = std::max(slowest, stage.forward + stage.backward + stage.update);
    }
    CHECK(period->time == period->rounds * slowest);
  }
}

TEST_CASE("a replicated plan's derived period is at least the slowest stage's (F + B) / r") {
  struct Plan {
    const char* replicas;
    std::vector<int> counts;
    bool reached;  // with stages as heavy as they have replicas
  };
  for (const Plan& plan : {Plan{"3-1", {3, 1}, true}, Plan{"7-1", {7, 1}, true},
                           Plan{"2-2", {2, 2}, true}, Plan{"2-1-1", {2, 1, 1}, false}}) {
    CAPTURE(plan.replicas);
    const int workers = std::accumulate(plan.counts.begin(), plan.counts.end(), 0);
    const int round = std::accumulate(plan.counts.begin(), plan.counts.end(), 1,
                                      [](int a, int b) { return std::lcm(a, b); });
    Costs costs =
        uniform_costs(static_cast<int>(plan.counts.size()), workers, Time{1}, Time{1}, Time{1});
    for (std::size_t s = 0; s < plan.counts.size(); ++s) {
      StageCosts& stage = costs.stage[s];
      stage.forward = stage.input_grad = stage.weight_grad = plan.counts[s] * Time{2};
      stage.backward = 2 * stage.forward;
    }
    const std::optional<Period> period =
        derived(test::run_schedule(std::string("pipedream:replicas=") + plan.replicas, workers,
                                   costs, 40 * round),
                40 * round, round);
    REQUIRE(period);
    const Time least = period->rounds * round * Time{6};  // (F + B) / r of every stage
    CHECK(period->time >= least);
    CHECK((period->time == least) == plan.reached);
  }
}

// ---- the law ------------------------------------------------------------------------------------

namespace {

struct Stream {
  const ScheduleSpec& spec;
  int devices;
  const Costs& costs;
  int step = 0;  // micro-batches between updates, where that is not each
};

TaskGraph stream_graph(const Stream& stream, int microbatches) {
  const int step = stream.step > 0 ? stream.step : microbatches;
  const Problem problem =
      test::problem_for(stream.spec, stream.devices, stream.costs, step, microbatches / step);
  return compile(complete(stream.spec.scheduler->schedule(problem), stream.costs), stream.costs);
}

Time stream_makespan(const Stream& stream, int microbatches) {
  return makespan(simulate(stream_graph(stream, microbatches)));
}

enum class Verdict {
  holds,
  fails,
  queues,  // for a link, in an order that no few rounds repeat, or that is another at the end
};

// Whether makespan(n + c) - makespan(n) = c · λ, twice in a row, for some n: beyond the transient,
// whose length is not known before.
Verdict grows_as_derived(const Stream& stream, int replicas) {
  constexpr int most = 24 * 64;
  bool shared = false;
  for (int rounds = 24; rounds <= most; rounds *= 2) {
    const int n = rounds * replicas;
    const TaskGraph graph = stream_graph(stream, n);
    const TaskTimes times = simulate(graph);
    shared = shares_resources(graph);
    for (const int together : {1, 2, 3, 4, 6}) {
      const std::optional<EventGraph> events = event_graph(graph, times, n, replicas * together);
      if (!events) continue;
      const Period period = period_of(*events);
      const int more = static_cast<int>(period.rounds) * replicas * together;
      const Time first = stream_makespan(stream, n + more) - makespan(times);
      if (first != period.time) continue;
      const Time second = stream_makespan(stream, n + 2 * more) - makespan(times) - first;
      if (second == period.time) return Verdict::holds;
    }
  }
  return shared ? Verdict::queues : Verdict::fails;
}

}  // namespace

TEST_CASE("every asynchronous schedule grows by its cycle ratio, on random stages and links") {
  std::mt19937 random(137);
  std::map<std::string, int> held;
  int linked = 0;
  int queue = 0;  // of these, so that the order at the links is another again and again
  for (int devices = 1; devices <= 6; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      if (spec.scheduler->synchrony != Synchrony::asynchronous) continue;
      for (const bool transfer : {false, false, true, true}) {
        const bool known = held.count(std::string(spec.scheduler->name)) > 0;
        if (known && !test::chosen(random, 2)) continue;
        CAPTURE(devices);
        CAPTURE(spelled(spec));
        CAPTURE(transfer);
        Costs costs;
        int round = 1;
        Verdict verdict = Verdict::fails;
        try {
          const int stages = test::stages_for(spec, devices);
          costs = test::random_costs(random, stages, devices, transfer);
          const Placement placement = test::placement_for(spec, devices, costs);
          for (const StagePlace& place : placement.stage) {
            round = std::lcm(round, std::max(1, static_cast<int>(place.replicas.size())));
          }
          const Problem small = test::problem_for(spec, devices, costs, devices);
          const bool by_step =
              spec.scheduler->schedule(small).settings.weights == WeightRule::double_buffer;
          const int step = by_step ? devices : 0;
          if (by_step) round = std::lcm(round, step);
          verdict = grows_as_derived({spec, devices, costs, step}, round);
        } catch (const UsageError&) {
          continue;  // a size that this schedule does not do
        }
        if (transfer) {
          CHECK(verdict != Verdict::fails);
        } else {
          CHECK(verdict == Verdict::holds);
        }
        linked += transfer ? 1 : 0;
        queue += verdict == Verdict::queues ? 1 : 0;
        if (verdict == Verdict::holds) ++held[std::string(spec.scheduler->name)];
      }
    }
  }
  CHECK(20 * queue <= linked);
  for (const Scheduler* const scheduler : schedulers()) {
    if (scheduler->synchrony != Synchrony::asynchronous) continue;
    CHECK_MESSAGE(held[std::string(scheduler->name)] > 0, scheduler->name);
  }
}

TEST_CASE("every synchronous schedule grows by its cycle ratio a step, on random stages") {
  std::mt19937 random(138);
  for (const int devices : {2, 3, 4}) {
    for (const ScheduleSpec& spec : parse_schedules("all")) {
      if (spec.scheduler->synchrony != Synchrony::synchronous) continue;
      CAPTURE(spelled(spec));
      CAPTURE(devices);
      Costs costs;
      const auto graph_of = [&](int steps, int& microbatches) {
        const Problem problem = test::problem_for(spec, devices, costs, 2 * devices, steps);
        const Program program = complete(spec.scheduler->schedule(problem), costs);
        microbatches = program.microbatches;
        return compile(program, costs);
      };
      TaskGraph graph;
      int m = 0;
      constexpr int steps = 8;
      try {
        costs = test::random_costs(random, test::stages_for(spec, devices), devices, false);
        graph = graph_of(steps, m);
      } catch (const UsageError&) {
        continue;  // a size that this schedule does not do
      }
      const TaskTimes times = simulate(graph);
      const std::optional<EventGraph> events = event_graph(graph, times, steps * m, m);
      REQUIRE(events);
      const Period period = period_of(*events);
      const auto more = static_cast<int>(period.rounds);
      CHECK(makespan(simulate(graph_of(steps + more, m))) - makespan(times) == period.time);
    }
  }
}

}  // namespace stageline::steady_state_tests
