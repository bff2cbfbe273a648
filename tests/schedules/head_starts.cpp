// Do the analyses follow tasks that start ahead of what they need, as buckets of gradients do?
#include <doctest/doctest.h>

#include "sim/analysis/metrics.hpp"
#include "sim/analysis/steady_state.hpp"
#include "sim/analysis/what_if.hpp"
#include "tests/make.hpp"

namespace stageline::head_starts_tests {
namespace {

// One stage on two replicas: a backward of 1000 ps each, then reductions that take 600 and may
// start 400 before the last backward ends.
struct Reduced {
  Program program;
  TaskGraph graph;
  TaskTimes times;
};
Reduced reduced(Time head_start) {
  Reduced made;
  Costs costs = uniform_costs(1, 2, Time{200}, Time{500}, Time{500});
  made.program = complete(parse_program("stageline-program 1\nmicrobatches: 2\nstage 0: gpu0+gpu1\n"
                                        "gpu0: 0F0 0B0\ngpu1: 0F1 0B1\n"),
                          costs);
  made.graph = compile(made.program, costs);
  for (std::uint32_t task = 0; task < made.graph.tasks(); ++task) {
    if (made.graph.op[task].kind != OpKind::reduce_grad) continue;
    made.graph.path_of[task] = static_cast<std::uint16_t>(made.graph.paths.size());
    made.graph.paths.emplace_back().head_start = head_start;
    made.graph.duration[task] = Time{600};
  }
  made.times = sweep(made.graph);
  return made;
}

std::string path_text(const std::vector<PathPiece>& path) {
  std::string text;
  for (const PathPiece& piece : path) {
    text += (text.empty() ? "" : ", ") + print(piece.op) + " " +
            std::to_string(piece.start.count()) + "-" + std::to_string(piece.end.count());
  }
  return text;
}

TEST_CASE("a reduction with a head start is on the critical path from the end of its backward") {
  const Reduced late = reduced(Time{});
  CHECK(makespan(late.times) == Time{1'800});
  const Reduced ahead = reduced(Time{400});
  CHECK(makespan(ahead.times) == Time{1'400});
  const std::vector<PathPiece> path = critical_path(ahead.graph, ahead.times);
  REQUIRE(path.size() == 3);
  CHECK(path.back().start == Time{1'200});
  CHECK(path.back().end == Time{1'400});
  CHECK(path[1].end == Time{1'200});
  CAPTURE(path_text(path));
  for (std::size_t i = 1; i < path.size(); ++i) CHECK(path[i].start == path[i - 1].end);
  // With a head start of its whole duration it ends with the backward.
  CHECK(makespan(reduced(Time{600}).times) == Time{1'200});
}

TEST_CASE("what-if: a reduction without time ends when its needs are there, not ahead of them") {
  const Reduced ahead = reduced(Time{400});
  WhatIf what_if(ahead.program, ahead.graph);
  CHECK(what_if.times().available == ahead.times.available);
  CHECK(what_if.make_free([](OpKind kind) { return kind == OpKind::reduce_grad; }));
  const TaskTimes times = what_if.times();
  for (std::uint32_t task = 0; task < ahead.graph.tasks(); ++task) {
    if (ahead.graph.op[task].kind == OpKind::reduce_grad)
      CHECK(times.available[task] == Time{1'200});
  }
}

TEST_CASE("the critical path has no gap with head starts, and ends at the makespan") {
  std::mt19937 random(11);
  int ahead = 0;
  for (int i = 0; i < 200; ++i) {
    const Costs costs = test::random_costs(random, 4, 4, true);
    test::Ran ran = test::run_schedule("1f1b", 4, costs, 6);
    for (std::size_t path = 1; path < ran.graph.paths.size(); ++path) {
      Time least{12};
      for (std::uint32_t task = 0; task < ran.graph.tasks(); ++task) {
        if (ran.graph.path_of[task] == path) least = std::min(least, ran.graph.duration[task]);
      }
      ran.graph.paths[path].head_start = least;
    }
    const TaskTimes times = simulate(ran.graph);
    ahead += times.available != ran.times.available ? 1 : 0;
    const std::vector<PathPiece> path = critical_path(ran.graph, times);
    CAPTURE(path_text(path));
    if (path.empty()) continue;
    CHECK(path.front().start == Time{});
    CHECK(path.back().end == makespan(times));
    for (std::size_t p = 1; p < path.size(); ++p) REQUIRE(path[p].start == path[p - 1].end);
  }
  CHECK(ahead > 50);
}

// PipeDream over wires of their own, with head starts of half of every message.
TaskGraph stream(int microbatches, Time transfer) {
  Costs costs = uniform_costs(3, 3, Time{30}, Time{20}, Time{20}, transfer);
  costs.stage[1].forward = Time{47};
  costs.stage[2].backward = Time{31};
  TaskGraph graph = test::run_schedule("pipedream", 3, costs, microbatches).graph;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    if (graph.path_of[task] == 0) continue;
    // A message as long as its latency was.
    Path& path = graph.paths[graph.path_of[task]];
    graph.duration[task] = transfer;
    path.lag = Time{};
    path.head_start = transfer / 2;
  }
  return graph;
}

TEST_CASE("the period of a stream with head starts is what every further micro-batch adds") {
  for (const int transfer : {0, 10, 26, 60}) {
    CAPTURE(transfer);
    const int n = 200;
    const TaskGraph graph = stream(n, Time{transfer});
    const TaskTimes times = sweep(graph);
    const std::optional<EventGraph> events = event_graph(graph, times, n, 1);
    REQUIRE(events);
    const Period period = period_of(*events);
    const int more = static_cast<int>(period.rounds) * 5;
    CHECK(makespan(sweep(stream(n + more, Time{transfer}))) - makespan(times) == 5 * period.time);
    if (transfer == 60) CHECK(period_of(with_free_links(*events)).time < period.time);
  }
}

}  // namespace
}  // namespace stageline::head_starts_tests
