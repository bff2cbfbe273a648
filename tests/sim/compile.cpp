// Does lowering keep its promises: order, lanes, needs, prices, paths? And does it say in words
// what cannot finish?
#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/task_graph.hpp"
#include "tests/random_program.hpp"
#include "tests/text.hpp"

namespace stageline::compile_tests {
namespace {

using test::straight_text;

const std::string two_stages = straight_text(2, 2,
                                             "gpu0: 0F0 0F1 0B0 0B1\n"
                                             "gpu1: 1F0 1B0 1F1 1B1\n");

Costs costs(int stages, int transfer = 0) {
  return uniform_costs(stages, stages, Time{1}, Time{1}, Time{1}, Time{transfer});
}

std::string refusal(const Program& program, const Costs& of) {
  return test::complaint<ProgramError>([&] { compile(program, of); });
}

// "0B1 3-5 on gpu0 compute needs 1B1", a line a task.
std::string tasks(const TaskGraph& graph) {
  const TaskTimes times = sweep(graph);
  std::string text;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Lane lane = graph.lanes[graph.lane[task]];
    text += print(graph.op[task]) + " " + std::to_string(start_of(graph, times, task).count()) +
            "-" + std::to_string(end_of(graph, times, task).count()) + " " +
            nth(graph.devices, lane.device) + " " + std::string(name(lane.kind));
    for (std::uint32_t i = graph.need_begin[task]; i < graph.need_begin[task + 1]; ++i) {
      text += " " + print(graph.op[graph.need[i]]);
    }
    text += "\n";
  }
  return text;
}

TEST_CASE("a program becomes tasks in a topological order, with needs of other lanes only") {
  CHECK(tasks(compile(parse_program(two_stages), costs(2))) ==
        "0F0 0-1 gpu0 compute\n"
        "0F1 1-2 gpu0 compute\n"
        "1F0 1-2 gpu1 compute 0F0\n"
        "1B0 2-4 gpu1 compute\n"
        "1F1 4-5 gpu1 compute 0F1\n"
        "1B1 5-7 gpu1 compute\n"
        "0B0 4-6 gpu0 compute 1B0\n"
        "0B1 7-9 gpu0 compute 1B1\n");
}

TEST_CASE("a send and its receive are one task in the sender's lane") {
  const std::string text = straight_text(2, 1,
                                         "gpu0: 0F0 0SEND_F0 0RECV_B0 0B0\n"
                                         "gpu1: 1RECV_F0 1F0 1B0 1SEND_B0\n");
  CHECK(tasks(compile(parse_program(text), costs(2, 5))) ==
        "0F0 0-1 gpu0 compute\n"
        "0SEND_F0 1-6 gpu0 send 0F0\n"
        "1F0 6-7 gpu1 compute 0SEND_F0\n"
        "1B0 7-9 gpu1 compute\n"
        "1SEND_B0 9-14 gpu1 send 1B0\n"
        "0B0 14-16 gpu0 compute 1SEND_B0\n");
}

TEST_CASE("latency delays the reader and not the sender's lane") {
  const std::string text =
      straight_text(2, 2,
                    "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                    "gpu1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1\n");
  Costs late = costs(2, 3);
  for (Route& route : late.network.routes) route.latency = Time{10};
  CHECK(test::lanes(test::simulated(parse_program(text), late).timeline) ==
        "gpu0 compute: 0F0 0-1, 0F1 1-2, 0B0 33-35, 0B1 36-38\n"
        "gpu0 send: 0SEND_F0 1-4, 0SEND_F1 4-7\n"
        "gpu0 receive: 0RECV_B0 30-33, 0RECV_B1 33-36\n"
        "gpu1 compute: 1F0 14-15, 1F1 17-18, 1B0 18-20, 1B1 20-22\n"
        "gpu1 send: 1SEND_B0 20-23, 1SEND_B1 23-26\n"
        "gpu1 receive: 1RECV_F0 11-14, 1RECV_F1 14-17\n");
}

TEST_CASE("an overlapped pair is one task as long as both") {
  const std::string text = straight_text(1, 2, "gpu0: 0F0 (0F1;0B0)OVERLAP_F_B 0B1\n");
  const test::Simulated ran = test::simulated(parse_program(text), costs(1));
  CHECK(ran.graph.tasks() == 3);
  CHECK(test::lanes(ran.timeline) == "gpu0 compute: 0F0 0-1, 0F1 1-4, 0B0 1-4, 0B1 4-6\n");
}

TEST_CASE("copies run in lanes of their own, and their stash comes back before it is read") {
  const std::string text = straight_text(1, 2, "gpu0: 0F0 0OFFLOAD0 0F1 0PREFETCH0 0B0 0B1\n");
  Costs of = costs(1);
  of.network.to_host[0].bandwidth = Bandwidth{1'000'000'000'000};  // 2 bytes: 2 ps
  of.network.to_host[0].latency = Time{1};
  of.network.from_host[0].bandwidth = Bandwidth{500'000'000'000};  // 4 ps
  of.network.from_host[0].latency = Time{2};
  CHECK(test::lanes(test::simulated(parse_program(text), of).timeline) ==
        "gpu0 compute: 0F0 0-1, 0F1 1-2, 0B0 10-12, 0B1 12-14\n"
        "gpu0 copy-out: 0OFFLOAD0 1-3\n"
        "gpu0 copy-in: 0PREFETCH0 4-8\n");
}

TEST_CASE("a ring all-reduce moves 2(r-1)/r of the gradients in 2(r-1) rounds") {
  const std::string text =
      "stageline-program 1\nmicrobatches: 3\nstage 0: a+b+c\n"
      "a: 0F0 0B0 0REDUCE_GRAD0 0U0\nb: 0F1 0B1 0REDUCE_GRAD0.1 0U0.1\n"
      "c: 0F2 0B2 0REDUCE_GRAD0.2 0U0.2\n";
  Costs of = uniform_costs(1, 3, Time{1}, Time{1}, Time{1}, Time{1});
  of.stage[0].gradients = Bytes{30};
  of.stage[0].update = Time{2};
  for (Route& route : of.network.routes) route.latency = Time{100};
  // 2·2/3 of 30 bytes are 40 ps, and 4 rounds of latency.
  CHECK(duration_of(parse_program(text), of, *parse_op("0REDUCE_GRAD0.1")) == Time{440});
  CHECK(test::lanes(test::simulated(parse_program(text), of).timeline) ==
        "a compute: 0F0 0-1, 0B0 1-3, 0U0 443-445\na send: 0REDUCE_GRAD0 3-443\n"
        "b compute: 0F1 0-1, 0B1 1-3, 0U0.1 443-445\nb send: 0REDUCE_GRAD0.1 3-443\n"
        "c compute: 0F2 0-1, 0B2 1-3, 0U0.2 443-445\nc send: 0REDUCE_GRAD0.2 3-443\n");
}

TEST_CASE("a reduction's latency is its own, also between devices that send each other messages") {
  // b and a hold stage 0, a holds stage 1: b sends to a, and b's part of the ring goes to a too.
  const std::string text =
      "stageline-program 1\nmicrobatches: 2\nstage 0: a+b\nstage 1: a\n"
      "a: 0F0 1F0 1RECV_F1 1F1 1B0 1B1 1SEND_B1 0B0 0REDUCE_GRAD0 0U0\n"
      "b: 0F1 0SEND_F1 0RECV_B1 0B1 0REDUCE_GRAD0.1 0U0.1\n";
  Costs of = uniform_costs(2, 2, Time{1}, Time{1}, Time{1}, Time{1});
  for (Route& route : of.network.routes) route.latency = Time{100};
  const std::string ran = test::lanes(test::simulated(parse_program(text), of).timeline);
  // Both rings begin when both B have ended and take 1 + 2·100; both updates follow at once.
  CHECK(test::contains(ran, "0REDUCE_GRAD0 210-411"));
  CHECK(test::contains(ran, "0REDUCE_GRAD0.1 210-411"));
  CHECK(test::contains(ran, "0U0 411-411"));
  CHECK(test::contains(ran, "0U0.1 411-411"));
}

TEST_CASE("a resource that one lane alone uses is not shared") {
  const std::string text = straight_text(2, 1,
                                         "gpu0: 0F0 0SEND_F0 0RECV_B0 0B0\n"
                                         "gpu1: 1RECV_F0 1F0 1B0 1SEND_B0\n");
  Costs of = costs(2, 1);
  CHECK_FALSE(shares_resources(compile(parse_program(text), of)));
  of.network.resources = {"bus", "alone"};
  of.network.routes[1].resources = {0, 1};  // gpu0 to gpu1
  of.network.routes[2].resources = {0};
  const TaskGraph graph = compile(parse_program(text), of);
  CHECK(shares_resources(graph));
  CHECK(graph.resources == std::vector<std::string>{"bus"});
}

TEST_CASE("what a task needs is numbered before it, in random programs") {
  test::RandomPrograms random(41);
  for (int i = 0; i < 200; ++i) {
    const test::RandomProgram made = random.make(true);
    const TaskGraph graph = compile(complete(made.program, made.costs), made.costs);
    bool forward = true;
    bool other_lane = true;
    std::vector<std::uint32_t> last(graph.lanes.size());
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      for (std::uint32_t n = graph.need_begin[task]; n < graph.need_begin[task + 1]; ++n) {
        forward = forward && graph.need[n] < task;
        other_lane = other_lane && graph.lane[graph.need[n]] != graph.lane[task];
      }
    }
    for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
      for (std::uint32_t n = graph.lane_begin[lane] + 1; n < graph.lane_begin[lane + 1]; ++n) {
        forward = forward && graph.lane_task[n - 1] < graph.lane_task[n];
      }
    }
    REQUIRE(forward);
    REQUIRE(other_lane);
  }
}

TEST_CASE("program and costs must be of the same stages, edges and devices") {
  const Program program = parse_program(two_stages);
  CHECK(refusal(program, costs(3)) ==
        "the program has 2 stages, but the costs are of 3; cut the model into 2 (--partition)");
  CHECK(refusal(program, uniform_costs(2, 1, Time{1}, Time{1}, Time{1})) ==
        "the program has 2 devices, but the cluster 1");
  Program apart = program;
  apart.edges.clear();
  CHECK(refusal(apart, costs(2)) ==
        "the program's stage edges are not those of the model as it is cut; give the program the "
        "line \"edges: 0>1\"");
}

TEST_CASE("what nobody makes is missed") {
  const Program program = parse_program(straight_text(1, 2, "gpu0: 0F0 0F1 0PREFETCH1 0B0 0B1\n"));
  CHECK(refusal(program, costs(1)) ==
        "0PREFETCH1 needs the offloaded stash of stage 0, number 1, but no op of the program makes "
        "it");
}

}  // namespace
}  // namespace stageline::compile_tests
