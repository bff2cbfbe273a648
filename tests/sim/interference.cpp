// Do ops that run beside others take what their slowdown says, and no others?
#include "sim/interference.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline::interference_tests {
namespace {

// A task each on lanes of their own, on devices 0, 1, …, that need nothing.
TaskGraph side_by_side(const std::vector<int>& durations) {
  TaskGraph graph;
  graph.paths = {Path{}};
  graph.need_begin = {0};
  graph.lane_begin = {0};
  for (std::size_t i = 0; i < durations.size(); ++i) {
    graph.op.push_back(Op{.kind = OpKind::forward});
    graph.lane.push_back(static_cast<std::uint16_t>(i));
    graph.path_of.push_back(0);
    graph.duration.emplace_back(durations[i]);
    graph.need_begin.push_back(0);
    graph.lane_task.push_back(static_cast<std::uint32_t>(i));
    graph.lane_begin.push_back(static_cast<std::uint32_t>(i + 1));
    graph.lanes.push_back({static_cast<int>(i), LaneKind::compute});
    graph.devices.emplace_back("gpu");
  }
  return graph;
}

void check_durations(const TaskGraph& graph, const std::vector<int>& expected) {
  REQUIRE(graph.duration.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(to_seconds(graph.duration[i]) ==
          doctest::Approx(to_seconds(Time{expected[i]})).epsilon(1e-3));
  }
}

}  // namespace

TEST_CASE("an op is slowed while another runs, and goes on alone at full speed") {
  TaskGraph graph = side_by_side({1000000, 600000});
  const TaskTimes times = simulate_together(graph, {{2.0}, {0, 0}});
  // At half speed the shorter one takes 1.2; the longer has 0.4 of its 1.0 left then.
  check_durations(graph, {1600000, 1200000});
  CHECK(to_seconds(makespan(times)) == doctest::Approx(1.6e-6).epsilon(1e-3));
}

TEST_CASE("more devices slow more, up to the last number that is given") {
  TaskGraph three = side_by_side({900000, 900000, 900000});
  simulate_together(three, {{1.5, 3.0}, {0, 0, 0}});
  check_durations(three, {2700000, 2700000, 2700000});
  TaskGraph four = side_by_side({900000, 900000, 900000, 900000});
  simulate_together(four, {{1.5, 3.0}, {0, 0, 0, 0}});
  check_durations(four, {2700000, 2700000, 2700000, 2700000});
}

TEST_CASE("devices of another machine are not met, nor are ops that do not compute") {
  TaskGraph apart = side_by_side({1000000, 1000000, 1000000});
  simulate_together(apart, {{2.0, 3.0}, {0, 1, 0}});
  check_durations(apart, {2000000, 1000000, 2000000});
  TaskGraph copies = side_by_side({1000000, 1000000});
  copies.lanes[1].kind = LaneKind::copy_out;
  simulate_together(copies, {{2.0}, {0, 0}});
  check_durations(copies, {1000000, 1000000});
}

TEST_CASE("an op that waits for another does not run beside it") {
  TaskGraph graph = side_by_side({1000000, 500000});
  graph.need = {0};
  graph.need_begin = {0, 0, 1};
  const TaskTimes times = simulate_together(graph, {{2.0}, {0, 0}});
  check_durations(graph, {1000000, 500000});
  CHECK(makespan(times) == Time{1500000});
}

TEST_CASE("without a slowdown nothing changes, to the picosecond") {
  for (const std::vector<double>& slowdown : {std::vector<double>{}, std::vector<double>{1.0}}) {
    TaskGraph graph = side_by_side({123457, 100003});
    const TaskTimes times = simulate_together(graph, {slowdown, {0, 0}});
    CHECK(graph.duration == std::vector<Time>{Time{123457}, Time{100003}});
    CHECK(times.available == simulate(graph).available);
  }
}

}  // namespace stageline::interference_tests
