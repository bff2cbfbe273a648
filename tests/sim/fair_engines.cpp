// Does run_fair follow its rules on graphs of every shape? Against a brute force that has no
// shortcuts, and against sweep where nothing is shared.
#include <doctest/doctest.h>

#include "sim/fair/shortest.hpp"
#include "tests/schedules/fair_brute_force.hpp"
#include "tests/schedules/fair_graph.hpp"
#include "tests/thorough.hpp"

namespace stageline::fair_engines_tests {
namespace {

constexpr int graphs = test::thorough ? 4000 : 400;

TEST_CASE("random graphs: run_fair and brute force agree to the picosecond") {
  test::RandomFairGraphs random(1);
  int delayed = 0;
  int slowed = 0;
  for (int i = 0; i < graphs; ++i) {
    CAPTURE(i);
    TaskGraph graph = random.make({true, i % 3 != 0, i % 2 == 0});
    const std::vector<Time> alone = graph.duration;
    const test::FairBruteForce brute(graph);
    const TaskTimes times = run_fair(graph);
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      CAPTURE(task);
      REQUIRE(times.available[task] == brute.available(task));
      REQUIRE(graph.duration[task] == brute.took(task));
      REQUIRE(shortest(graph, task) <= alone[task]);
      const bool longer = graph.duration[task] > alone[task] + Time{1};
      (graph.bytes[task] > Bytes{} ? delayed : slowed) += longer ? 1 : 0;
    }
  }
  // The graphs are worth their while.
  CHECK(delayed > 5 * graphs);
  CHECK(slowed > graphs);
}

TEST_CASE("random graphs: capacities that never bind give the times of sweep, and durations stay") {
  test::RandomFairGraphs random(2);
  for (int i = 0; i < graphs / 2; ++i) {
    CAPTURE(i);
    TaskGraph graph = random.make({false, false, i % 2 == 0});
    const std::vector<Time> alone = graph.duration;
    const TaskTimes swept = sweep(graph);
    REQUIRE(run_fair(graph).available == swept.available);
    REQUIRE(graph.duration == alone);
  }
}

TEST_CASE("random graphs: a sweep of what tasks took gives the times of the run") {
  test::RandomFairGraphs random(3);
  for (int i = 0; i < graphs / 4; ++i) {
    CAPTURE(i);
    TaskGraph graph = random.make({true, true, false});
    const TaskTimes times = run_fair(graph);
    REQUIRE(sweep(graph).available == times.available);
  }
}

TEST_CASE("random graphs: twice the same, and in any order of tasks, lanes, paths and links") {
  test::RandomFairGraphs random(4);
  for (int i = 0; i < graphs / 4; ++i) {
    CAPTURE(i);
    const TaskGraph graph = random.make({true, true, i % 2 == 0});
    std::vector<Time> took;
    const TaskTimes times = run_fair(graph, took);
    std::vector<Time> took_again;
    CHECK(run_fair(graph, took_again).available == times.available);
    CHECK(took_again == took);
    test::Shuffled other = test::shuffled(graph, random.engine());
    const TaskTimes other_times = run_fair(other.graph);
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      CAPTURE(task);
      REQUIRE(other_times.available[other.number[task]] == times.available[task]);
      REQUIRE(other.graph.duration[other.number[task]] == took[task]);
    }
  }
}

}  // namespace
}  // namespace stageline::fair_engines_tests
