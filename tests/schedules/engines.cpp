// Do sweep, run, a brute-force engine, a simulator written from the table of needs, and Boost's
// longest path agree? On programs of every shape and on those of the schedulers.
#include <doctest/doctest.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dag_shortest_paths.hpp>

#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/random_program.hpp"
#include "tests/schedules/brute_force.hpp"
#include "tests/schedules/reference_difference.hpp"
#include "tests/text.hpp"

namespace stageline::engines_tests {
namespace {

// Longest path over the tasks by Boost.Graph: shortest with all lengths negated. An edge weighs
// what lies between two starts; the node behind all tasks starts when the last result is there.
TaskTimes longest_paths(const TaskGraph& graph) {
  using Dag = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                                    boost::property<boost::edge_weight_t, std::int64_t>>;
  const std::size_t source = graph.tasks();
  Dag dag(source + 1);
  const auto lag = [&](std::uint32_t task) { return graph.paths[graph.path_of[task]].lag; };
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    boost::add_edge(source, task, 0, dag);
    for (std::uint32_t i = graph.need_begin[task]; i < graph.need_begin[task + 1]; ++i) {
      const std::uint32_t need = graph.need[i];
      const Time ahead = graph.paths[graph.path_of[task]].head_start;
      const Time apart = std::max(Time{}, graph.duration[need] + lag(need) - ahead);
      boost::add_edge(need, task, -apart.count(), dag);
    }
  }
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    for (std::uint32_t i = graph.lane_begin[lane] + 1; i < graph.lane_begin[lane + 1]; ++i) {
      const std::uint32_t before = graph.lane_task[i - 1];
      boost::add_edge(before, graph.lane_task[i], -graph.duration[before].count(), dag);
    }
  }
  std::vector<std::int64_t> distance(source + 1);
  boost::dag_shortest_paths(dag, source,
                            boost::distance_map(boost::make_iterator_property_map(
                                distance.begin(), get(boost::vertex_index, dag))));
  TaskTimes times;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    times.available.push_back(Time{-distance[task]} + graph.duration[task] + lag(task));
  }
  return times;
}

std::string difference_to_reference(const Program& program, const Costs& costs) {
  const TaskGraph graph = compile(program, costs);
  return test::difference(timeline_of(program, graph, sweep(graph)),
                          test::reference(program, costs));
}

// Delays one task by `delay` and sweeps again.
Time makespan_with(TaskGraph graph, std::uint32_t task, Time delay) {
  graph.duration[task] += delay;
  return makespan(sweep(graph));
}

// Gives some of the paths a head start of up to the duration of their tasks. Returns how many.
int give_head_starts(TaskGraph& graph, std::mt19937& random) {
  int given = 0;
  for (std::size_t path = 1; path < graph.paths.size(); ++path) {
    Time least{12};
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      if (graph.path_of[task] == path) least = std::min(least, graph.duration[task]);
    }
    Time& head_start = graph.paths[path].head_start;
    head_start = Time{std::uniform_int_distribution<std::int64_t>(0, least.count())(random)};
    given += head_start > Time{} ? 1 : 0;
  }
  return given;
}

void check_engines(const TaskGraph& graph) {
  const TaskTimes swept = sweep(graph);
  const TaskTimes ran = run(graph);
  CHECK(longest_paths(graph).available == swept.available);
  CHECK(test::brute_force(graph).available == ran.available);
  if (!shares_resources(graph)) CHECK(ran.available == swept.available);
  bool earlier = false;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    earlier = earlier || ran.available[task] < swept.available[task];
  }
  CHECK_FALSE(earlier);  // sharing makes nobody faster than the dependencies allow
}

TEST_CASE("random programs: compile and sweep do what the table of needs says") {
  test::RandomPrograms random(1);
  std::size_t ops = 0;
  for (int i = 0; i < 600; ++i) {
    test::RandomProgram made = random.make(i % 2 == 0);
    const Program program = complete(std::move(made.program), made.costs);
    CAPTURE(print(program));
    REQUIRE_NOTHROW(validate(program));
    REQUIRE(difference_to_reference(program, made.costs) == "");
    for (const auto& list : program.ops) ops += list.size();
  }
  CHECK(ops > 30'000);
}

TEST_CASE("random programs: sweep, run, brute force and longest path agree") {
  test::RandomPrograms random(2);
  int shared = 0;
  int waited = 0;
  for (int i = 0; i < 500; ++i) {
    test::RandomProgram made = random.make(i % 3 != 0);
    const Program program = complete(std::move(made.program), made.costs);
    CAPTURE(print(program));
    const TaskGraph graph = compile(program, made.costs);
    check_engines(graph);
    shared += shares_resources(graph) ? 1 : 0;
    waited += run(graph).available != sweep(graph).available ? 1 : 0;
  }
  // The programs are worth their while: many share buses, and then somebody waits.
  CHECK(shared > 150);
  CHECK(waited > 100);
}

TEST_CASE("random programs with head starts: sweep, run, brute force and longest path agree") {
  test::RandomPrograms random(5);
  std::mt19937 ahead(6);
  int earlier = 0;
  for (int i = 0; i < 300; ++i) {
    test::RandomProgram made = random.make(i % 3 != 0);
    const Program program = complete(std::move(made.program), made.costs);
    CAPTURE(print(program));
    TaskGraph graph = compile(program, made.costs);
    const Time before = makespan(sweep(graph));
    if (give_head_starts(graph, ahead) == 0) continue;
    check_engines(graph);
    earlier += makespan(sweep(graph)) < before ? 1 : 0;
  }
  CHECK(earlier > 50);
}

TEST_CASE("a task may be late by its slack, and not by a picosecond more") {
  test::RandomPrograms random(3);
  std::mt19937 ahead(7);
  int with_slack = 0;
  for (int i = 0; i < 90; ++i) {
    test::RandomProgram made = random.make(false);
    const Program program = complete(std::move(made.program), made.costs);
    CAPTURE(print(program));
    TaskGraph graph = compile(program, made.costs);
    if (i % 3 == 0) give_head_starts(graph, ahead);
    const TaskTimes times = sweep(graph);
    const std::vector<Time> spare = slack(graph, times);
    const Time end = makespan(times);
    bool right = true;
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      right = right && spare[task] >= Time{} && makespan_with(graph, task, spare[task]) == end &&
              makespan_with(graph, task, spare[task] + Time{1}) == end + Time{1};
      with_slack += spare[task] > Time{} ? 1 : 0;
    }
    REQUIRE(right);
  }
  CHECK(with_slack > 500);
}

TEST_CASE("the schedulers' programs: every engine gives the same times") {
  std::mt19937 random(4);
  for (const char* const name :
       {"naive", "gpipe:recompute=always", "gpipe:recompute=except_last,reverse=yes", "1f1b",
        "1f1b:recompute=always", "pipedream", "pipedream:replicas=2-1", "pipedream:replicas=1-2-1",
        "pipedream:replicas=2-3"}) {
    const ScheduleSpec spec = test::spec(name);
    const std::string replicas = spec.knobs.count("replicas") > 0 ? spec.knobs.at("replicas") : "";
    for (int microbatches = 1; microbatches <= 9; microbatches += 2) {
      for (const bool transfer : {false, true}) {
        const int devices = replicas == "2-1" ? 3 : replicas == "2-3" ? 5 : 4;
        const int stages = test::stages_for(spec, devices);
        const Costs costs = test::random_costs(random, stages, devices, transfer);
        const Program program = complete(
            spec.scheduler->schedule(test::problem_for(spec, devices, costs, microbatches, 2)),
            costs);
        CAPTURE(print(program));
        check_engines(compile(program, costs));
        REQUIRE(difference_to_reference(program, costs) == "");
      }
    }
  }
}

}  // namespace
}  // namespace stageline::engines_tests
