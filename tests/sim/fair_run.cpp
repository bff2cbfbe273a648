// Do transfers share links fairly over time, and does compute slow down beside them?
#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "sim/fair/event_queue.hpp"
#include "sim/fair/rated_work.hpp"
#include "sim/interference.hpp"
#include "tests/schedules/fair_graph.hpp"

namespace stageline::fair_run_tests {
namespace {

using test::byte_per_ps;
using test::GraphWriter;

constexpr Time million{1'000'000};

Path across(std::vector<std::uint32_t> resources) {
  Path path;
  path.resources = std::move(resources);
  return path;
}

// Flows that all start at 0, each in a lane of its own.
struct At {
  std::vector<std::uint32_t> links;
  std::int64_t bytes;
  Time after{};
};
std::vector<Time> ends(const std::vector<double>& capacity, const std::vector<At>& flows) {
  GraphWriter writer(1, capacity);
  for (const At& flow : flows) {
    Path path = across(flow.links);
    path.setup = flow.after;
    writer.flow(writer.lane(0, LaneKind::send), writer.path(path), Bytes{flow.bytes});
  }
  TaskGraph graph = writer.graph();
  return run_fair(graph).available;
}

TEST_CASE("three flows on two links: rates change as flows end and begin") {
  // Rates 7, 3, 3, until the second ends at 2.
  CHECK(ends({10, 6}, {{{0}, 21'000'000}, {{0, 1}, 6'000'000}, {{1}, 12'000'000}}) ==
        std::vector<Time>{Time{2'700'000}, Time{2'000'000}, Time{3'000'000}});
  // The second one enters at 1: rates 10 and 6 before. 18/7 in whole picoseconds.
  CHECK(ends({10, 6}, {{{0}, 21'000'000}, {{0, 1}, 6'000'000, million}, {{1}, 12'000'000}}) ==
        std::vector<Time>{Time{2'571'429}, Time{3'000'000}, Time{3'000'000}});
}

TEST_CASE("of links that all flows cross alike the narrowest limits them") {
  CHECK(ends({3, 2, 4}, {{{0, 1, 2}, 6'000'000}, {{0, 1, 2}, 6'000'000}}) ==
        std::vector<Time>{Time{6'000'000}, Time{6'000'000}});
  // The last link has a flow of its own, which is slower there than both others.
  CHECK(ends({3, 2, 4}, {{{0, 1, 2}, 6'000'000}, {{0, 1, 2}, 6'000'000}, {{2}, 12'000'000}}) ==
        std::vector<Time>{Time{6'000'000}, Time{6'000'000}, Time{6'000'000}});
}

TEST_CASE("two equal messages: first come, first served ends the first in half the time") {
  GraphWriter writer(1, {1});
  const std::uint16_t path = writer.path(across({0}));
  writer.flow(writer.lane(0, LaneKind::send), path, Bytes{1'000'000});
  writer.flow(writer.lane(0, LaneKind::send), path, Bytes{1'000'000});
  TaskGraph graph = writer.graph();
  CHECK(run(graph).available == std::vector<Time>{million, 2 * million});
  CHECK(simulate(graph).available == std::vector<Time>{2 * million, 2 * million});
  CHECK(graph.duration == std::vector<Time>{million, million});  // alone
  CHECK(run_fair(graph).available == std::vector<Time>{2 * million, 2 * million});
  CHECK(graph.duration == std::vector<Time>{2 * million, 2 * million});
}

// One op beside a transfer on its own device.
struct Beside {
  Time compute_end;
  Time compute_took;
  Time flow_end;
};
Beside beside(Time compute, std::int64_t bytes, double slowdown, Path path = {}, double drag = 0) {
  GraphWriter writer(2);
  path.bandwidth = {byte_per_ps};
  path.tier = Tier::network;
  path.devices = {0};
  writer.slow_by(Tier::network, slowdown);
  writer.drag_by(Tier::network, drag);
  const std::uint32_t op = writer.task(writer.lane(0, LaneKind::compute), compute);
  const std::uint32_t flow =
      writer.flow(writer.lane(0, LaneKind::send), writer.path(path), {bytes});
  TaskGraph graph = writer.graph();
  const TaskTimes times = run_fair(graph);
  CHECK(sweep(graph).available == times.available);  // with the durations of the run
  return {times.available[op], graph.duration[op], times.available[flow]};
}

TEST_CASE("compute is slowed while bytes move on its device, and at full rate after") {
  // 10 ms beside 6 ms at γ = 0.25: 4.8 ms of work by then, 5.2 ms left.
  const Beside both = beside(Time{10'000'000'000}, 6'000'000'000, 0.25);
  CHECK(both.compute_end == Time{11'200'000'000});
  CHECK(both.compute_took == Time{11'200'000'000});
  CHECK(both.flow_end == Time{6'000'000'000});
  // Short compute is slowed to its end.
  CHECK(beside(Time{1'000}, 6'000, 0.25).compute_end == Time{1'250});
  CHECK(beside(Time{1'001}, 6'000, 0.25).compute_end == Time{1'252});  // 1251.25
}

TEST_CASE("a transfer is slowed while a device of it computes, and at full rate after") {
  // 10 ms beside 6 ms at γ = 0.25 and γ' = 0.5: 9 ms for the bytes, in which compute does 7.2 ms.
  const Beside both = beside(Time{10'000'000'000}, 6'000'000'000, 0.25, {}, 0.5);
  CHECK(both.flow_end == Time{9'000'000'000});
  CHECK(both.compute_end == Time{11'800'000'000});
  // Compute ends first: 1.25 s, in which 5/6 of a second's bytes move; the rest at full rate.
  CHECK(beside(Time{1'000}, 6'000, 0.25, {}, 0.5).flow_end == Time{6'417});  // 1250 + 5166.67
  // Where transfers alone are slowed.
  const Beside alone = beside(Time{3'000}, 6'000, 0, {}, 0.5);
  CHECK(alone.compute_end == Time{3'000});
  CHECK(alone.flow_end == Time{7'000});
}

TEST_CASE("a slowed transfer keeps its share of a link") {
  GraphWriter writer(2, {1});
  writer.drag_by(Tier::network, 1);
  writer.task(writer.lane(0, LaneKind::compute), Time{100'000});
  std::vector<std::uint32_t> flows;
  for (const std::uint16_t device : {0, 1}) {
    Path path = across({0});
    path.tier = Tier::network;
    path.devices = {device};
    const std::uint16_t lane = writer.lane(device, LaneKind::send);
    flows.push_back(writer.flow(lane, writer.path(path), {1'000}));
  }
  TaskGraph graph = writer.graph();
  const TaskTimes times = run_fair(graph);
  CHECK(times.available[flows[1]] == Time{2'000});  // half of the link
  CHECK(times.available[flows[0]] == Time{3'000});  // 500 bytes by then, then 500 at half the rate
}

TEST_CASE("setup moves no bytes and slows nothing") {
  Path path;
  path.setup = Time{4'000};
  const Beside late = beside(Time{10'000}, 6'000, 0.25, path);
  CHECK(late.flow_end == Time{10'000});
  CHECK(late.compute_end ==
        Time{11'200});  // 4,000, then 4,800 of work while bytes move, then 1,200
}

TEST_CASE("flows of one tier count once, those of two tiers add up") {
  for (const bool two_tiers : {false, true}) {
    GraphWriter writer(1);
    writer.slow_by(Tier::network, 0.25);
    writer.slow_by(Tier::nvlink, 0.5);
    const std::uint32_t op = writer.task(writer.lane(0, LaneKind::compute), Time{4'000});
    for (const Tier tier : {Tier::network, two_tiers ? Tier::nvlink : Tier::network}) {
      Path path;
      path.bandwidth = {byte_per_ps};
      path.tier = tier;
      path.devices = {0};
      writer.flow(writer.lane(0, LaneKind::send), writer.path(path), {100'000});
    }
    TaskGraph graph = writer.graph();
    CHECK(run_fair(graph).available[op] == Time{two_tiers ? 7'000 : 5'000});
  }
}

TEST_CASE(
    "messages slow compute by a factor of their own; beside a collective the larger one holds") {
  const auto end_beside = [](bool collective, double of_messages) {
    GraphWriter writer(1);
    writer.slow_by(Tier::nvlink, 0.25);
    writer.slow_by_messages(Tier::nvlink, of_messages);
    const std::uint32_t op = writer.task(writer.lane(0, LaneKind::compute), Time{4'000});
    for (const bool is_message : {true, false}) {
      if (!is_message && !collective) continue;
      Path path;
      path.bandwidth = {byte_per_ps};
      path.tier = Tier::nvlink;
      path.is_message = is_message;
      path.devices = {0};
      writer.flow(writer.lane(0, LaneKind::send), writer.path(path), {100'000});
    }
    TaskGraph graph = writer.graph();
    return run_fair(graph).available[op];
  };
  CHECK(end_beside(false, 0) == Time{4'000});
  CHECK(end_beside(false, 0.5) == Time{6'000});
  CHECK(end_beside(true, 0) == Time{5'000});
  CHECK(end_beside(true, 0.5) == Time{6'000});
}

TEST_CASE("communication of other devices, or of a tier without a slowdown, slows nothing") {
  Path path;
  path.bandwidth = {byte_per_ps};
  path.tier = Tier::network;
  path.devices = {1};
  GraphWriter writer(2);
  writer.slow_by(Tier::network, 0.25);
  writer.slow_by(Tier::nvlink, 0);
  const std::uint32_t op = writer.task(writer.lane(0, LaneKind::compute), Time{4'000});
  writer.flow(writer.lane(1, LaneKind::send), writer.path(path), {100'000});
  path.tier = Tier::nvlink;
  path.devices = {0};
  writer.flow(writer.lane(0, LaneKind::send), writer.path(path), {100'000});
  TaskGraph graph = writer.graph();
  CHECK(run_fair(graph).available[op] == Time{4'000});
}

TEST_CASE("a transfer without bytes takes its duration and shares nothing") {
  GraphWriter writer(1, {1});
  Path path = across({0});
  path.setup = Time{30};
  const std::uint16_t number = writer.path(path);
  writer.flow(writer.lane(0, LaneKind::send), number, Bytes{100});
  writer.task(writer.lane(0, LaneKind::send), Time{70}, {}, number);
  TaskGraph graph = writer.graph();
  CHECK(run_fair(graph).available == std::vector<Time>{Time{130}, Time{70}});
}

TEST_CASE("a lane's next transfer waits for the last one, and readers for the lag") {
  GraphWriter writer(2, {1});
  Path path = across({0});
  path.lag = Time{5};
  const std::uint16_t send = writer.lane(0, LaneKind::send);
  const std::uint16_t number = writer.path(path);
  const std::uint32_t first = writer.flow(send, number, Bytes{100});
  writer.flow(send, number, Bytes{100});
  writer.task(writer.lane(1, LaneKind::compute), Time{10}, {first});
  TaskGraph graph = writer.graph();
  CHECK(run_fair(graph).available == std::vector<Time>{Time{105}, Time{205}, Time{115}});
}

TEST_CASE("a link without a limit is not shared") {
  GraphWriter writer(1, {1});
  const std::uint16_t path = writer.path(across({0}));
  writer.task(writer.lane(0, LaneKind::send), Time{100}, {}, path, Bytes{1'000});
  writer.task(writer.lane(0, LaneKind::send), Time{100}, {}, path, Bytes{1'000});
  TaskGraph graph = writer.graph();
  graph.capacity[0] = Bandwidth::unlimited();
  CHECK(run_fair(graph).available == std::vector<Time>{Time{100}, Time{100}});
}

TEST_CASE("a start ahead of a need: by the end that is planned, and slowed from then on") {
  GraphWriter writer(1);
  writer.slow_by(Tier::network, 0.25);
  Path path;
  path.bandwidth = {byte_per_ps};
  path.tier = Tier::network;
  path.devices = {0};
  path.head_start = Time{400};
  const std::uint32_t backward = writer.task(writer.lane(0, LaneKind::compute), Time{1'000});
  const std::uint32_t reduction =
      writer.flow(writer.lane(0, LaneKind::send), writer.path(path), {1'000}, {backward});
  TaskGraph graph = writer.graph();
  const TaskTimes times = run_fair(graph);
  CHECK(start_of(graph, times, reduction) == Time{600});
  CHECK(times.available[reduction] == Time{1'600});
  CHECK(times.available[backward] == Time{1'100});
}

TEST_CASE("a flow with its own bandwidth takes its duration, whose parts were rounded") {
  GraphWriter writer(1, {10});
  Path path = across({0});
  path.bandwidth = {byte_per_ps};
  const std::uint32_t flow =
      writer.flow(writer.lane(0, LaneKind::send), writer.path(path), Bytes{1'000});
  TaskGraph graph = writer.graph();
  graph.duration[flow] += Time{5};
  CHECK(run_fair(graph).available[flow] == Time{1'005});
}

TEST_CASE("work that is left ends in the first whole picosecond, whatever the rounding") {
  CHECK(time_to_end(100, 1) == Time{100});
  CHECK(time_to_end(100, 3) == Time{34});
  CHECK(time_to_end(1, 1.0 / 3) == Time{3});
  CHECK(time_to_end(0.1 + 0.2, 0.1) == Time{3});
  CHECK(time_to_end(1, 1e6) == Time{1});
  CHECK(time_to_end(9e15, 1) == Time{9'000'000'000'000'000});
  CHECK_THROWS_AS(time_to_end(1e19, 1e-3), UsageError);
  RatedWork work;
  work.left = 100;
  CHECK(work.go_on(2, Time{10}) == Time{60});
  CHECK(work.go_on(0.5, Time{20}) == Time{180});
  CHECK(work.left == 80);
}

TEST_CASE("the first event comes first, also after it has moved") {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const std::size_t lanes = random() % 40 + 1;
    EventQueue queue(lanes);
    std::vector<Time> at(lanes, Time{-1});
    for (int step = 0; step < 200; ++step) {
      if (random() % 3 > 0) {
        const std::uint32_t lane = random() % lanes;
        at[lane] = Time{random() % 50};
        queue.set(lane, at[lane]);
      }
      std::uint32_t first = 0;
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        const bool sooner = at[first] < Time{} || at[lane] < at[first];
        if (at[lane] >= Time{} && sooner) first = lane;
      }
      REQUIRE(queue.empty() == (at[first] < Time{}));
      if (queue.empty()) continue;
      REQUIRE(queue.first() == at[first]);
      if (random() % 2 > 0) continue;
      REQUIRE(queue.pop() == first);
      at[first] = Time{-1};
    }
  }
}

TEST_CASE("devices of a machine and communication slow compute at once") {
  // Two devices compute side by side (twice as long), a transfer slows one of them by 1.25 as well.
  GraphWriter writer(2);
  writer.slow_by(Tier::network, 0.25);
  const std::uint32_t one = writer.task(writer.lane(0, LaneKind::compute), million);
  const std::uint32_t other = writer.task(writer.lane(1, LaneKind::compute), 2 * million);
  Path path;
  path.bandwidth = {byte_per_ps};
  path.tier = Tier::network;
  path.devices = {0};
  writer.flow(writer.lane(0, LaneKind::send), writer.path(path), {10'000'000});
  TaskGraph graph = writer.graph();
  const TaskTimes times = simulate_together(graph, {{2.0}, {0, 0}});
  // 1e6 of work at 1/2 · 4/5; the other does half of that time, and the rest alone.
  CHECK(to_seconds(graph.duration[one]) == doctest::Approx(2.5e-6).epsilon(1e-3));
  CHECK(to_seconds(graph.duration[other]) == doctest::Approx(3.25e-6).epsilon(1e-3));
  for (const std::uint32_t task : {one, other}) {
    CHECK(start_of(graph, times, task) == Time{});
    CHECK(end_of(graph, times, task) == graph.duration[task]);
  }
}

}  // namespace
}  // namespace stageline::fair_run_tests
