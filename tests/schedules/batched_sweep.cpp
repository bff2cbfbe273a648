// Does the batched engine give what sweep() and run() give, scenario by scenario?
#include "sim/batch/batched_sweep.hpp"

#include <doctest/doctest.h>

#include <random>

#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/random_program.hpp"
#include "tests/specs.hpp"

namespace stageline::batched_sweep_tests {
namespace {

constexpr std::size_t width = BatchedSweep::width;

// duration[task * width + k]: from half to twice the graph's, seeded.
std::vector<std::int64_t> drawn(const TaskGraph& graph, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::int64_t> duration;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    for (std::size_t k = 0; k < width; ++k) {
      const double factor = 0.5 + 1.5 * static_cast<double>(random() % 1000) / 1000;
      duration.push_back(
          static_cast<std::int64_t>(static_cast<double>(graph.duration[task].count()) * factor));
    }
  }
  return duration;
}

TaskGraph with_column(TaskGraph graph, const std::vector<std::int64_t>& duration, std::size_t k) {
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    graph.duration[task] = Time{duration[task * width + k]};
  }
  return graph;
}

void check_columns(const TaskGraph& graph, std::uint32_t seed) {
  const std::vector<std::int64_t> duration = drawn(graph, seed);
  std::vector<std::int64_t> available(duration.size());
  std::vector<std::int64_t> last(width);
  const BatchedSweep batched(graph);
  REQUIRE(batched.tasks() == graph.tasks());
  batched.ends(duration, available);
  batched.makespans(available, last);
  for (std::size_t k = 0; k < width; ++k) {
    const TaskTimes times = sweep(with_column(graph, duration, k));
    CHECK(makespan(times).count() == last[k]);
    bool same = true;
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      same = same && times.available[task].count() == available[task * width + k];
    }
    CHECK(same);
  }
}

}  // namespace

TEST_CASE("sixteen scenarios at once are sixteen sweeps, task by task") {
  SUBCASE("random programs") {
    test::RandomPrograms programs(5);
    for (std::uint32_t i = 0; i < 60; ++i) {
      const test::RandomProgram made = programs.make(false);
      check_columns(compile(complete(made.program, made.costs), made.costs), i);
    }
  }
  SUBCASE("every schedule") {
    for (const ScheduleSpec& spec : test::all_specs(3)) {
      CAPTURE(spelled(spec));
      try {
        const Costs costs =
            uniform_costs(test::stages_for(spec, 3), 3, Time{10}, Time{11}, Time{12}, Time{2});
        const Problem problem = test::problem_for(spec, 3, costs, 6);
        const Program program = complete(spec.scheduler->schedule(problem), problem.costs);
        check_columns(compile(program, problem.costs), 7);
      } catch (const UsageError&) {  // it does not go on three devices
      }
    }
  }
  SUBCASE("head starts") {
    test::RandomPrograms programs(6);
    for (std::uint32_t i = 0; i < 30; ++i) {
      const test::RandomProgram made = programs.make(false);
      TaskGraph graph = compile(complete(made.program, made.costs), made.costs);
      for (std::size_t p = 0; p < graph.paths.size(); ++p) graph.paths[p].head_start = Time(p % 5);
      check_columns(graph, i);
    }
  }
}

TEST_CASE("resources serve in the order of the nominal run") {
  test::RandomPrograms programs(7);
  int shared = 0;
  for (int i = 0; i < 60; ++i) {
    const test::RandomProgram made = programs.make(true);
    const TaskGraph graph = compile(complete(made.program, made.costs), made.costs);
    if (is_fair(graph)) continue;
    const TaskTimes nominal = run(graph);
    const BatchedSweep batched(graph, nominal);
    std::vector<std::int64_t> duration;
    for (const Time time : graph.duration) duration.insert(duration.end(), width, time.count());
    std::vector<std::int64_t> available(duration.size());
    batched.ends(duration, available);
    bool same = true;
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      same = same && nominal.available[task].count() == available[task * width + width - 1];
    }
    CHECK(same);
    shared += shares_resources(graph) ? 1 : 0;
  }
  CHECK(shared > 10);
}

TEST_CASE("links at fair rates have no order to keep") {
  TaskGraph graph;
  graph.bytes.push_back(Bytes{1});
  CHECK_THROWS_AS(BatchedSweep(graph, TaskTimes{}), UsageError);
}

}  // namespace stageline::batched_sweep_tests
