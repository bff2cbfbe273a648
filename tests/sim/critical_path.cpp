// Which chain of ops set the pace?
#include <doctest/doctest.h>

#include "sim/analysis/metrics.hpp"
#include "tests/random_program.hpp"
#include "tests/text.hpp"

namespace stageline::critical_path_tests {
namespace {

using test::straight_text;

std::string told(const std::vector<PathPiece>& path) {
  std::string text;
  for (const PathPiece& piece : path) {
    text += (text.empty() ? "" : ", ") + print(piece.op);
    if (piece.kind == PathPiece::Kind::queue) text += " queues";
    if (piece.kind == PathPiece::Kind::latency) text += " travels";
    text += " " + std::to_string(piece.start.count()) + "-" + std::to_string(piece.end.count());
  }
  return text;
}
std::string told(const std::vector<PathShare>& parts) {
  std::string text;
  for (const PathShare& part : parts) {
    text += (text.empty() ? "" : ", ") + part.kind + " " + std::to_string(part.time.count());
  }
  return text;
}
std::vector<PathPiece> path_of(const std::string& text, const Costs& costs) {
  const test::Simulated ran = test::simulated(parse_program(text), costs);
  return critical_path(ran.graph, ran.times);
}

TEST_CASE("the path runs down the stages, through the slowest, and back up") {
  Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1});
  costs.stage[1].forward = Time{2};
  const std::vector<PathPiece> path =
      path_of(straight_text(2, 2, "gpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1F1 1B0 1B1\n"), costs);
  CHECK(told(path) == "0F0 0-1, 1F0 1-3, 1F1 3-5, 1B0 5-7, 1B1 7-9, 0B1 9-11");
  CHECK(told(shares(path)) == "F 5, B 6");
}

TEST_CASE("of two causes at one moment the need comes before the lane") {
  // 1F1 could start at 2 by its lane (1F0) and by its need (0F1).
  const std::vector<PathPiece> path =
      path_of(straight_text(2, 2, "gpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1F1 1B1 1B0\n"),
              uniform_costs(2, 2, Time{1}, Time{1}, Time{1}));
  CHECK(told(path) == "0F0 0-1, 0F1 1-2, 1F1 2-3, 1B1 3-5, 1B0 5-7, 0B0 7-9, 0B1 9-11");
}

TEST_CASE("of two needs at one moment the one with the smaller number is told") {
  Costs costs = uniform_costs(3, 3, Time{1}, Time{1}, Time{1});
  costs.stage[1].backward = Time{};  // so that stage 0 alone ends last
  costs.edges = {{{0, 2}, {}, {}}, {{1, 2}, {}, {}}};
  const std::vector<PathPiece> path = path_of(
      straight_text(3, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1B0\ngpu2: 2F0 2B0\n", "edges: 0>2 1>2\n"),
      costs);
  CHECK(told(path) == "0F0 0-1, 2F0 1-2, 2B0 2-4, 0B0 4-6");
}

TEST_CASE("bytes on the link and latency are pieces of their own") {
  Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1}, Time{4});
  for (Route& route : costs.network.routes) route.latency = Time{2};
  const std::vector<PathPiece> path = path_of(
      straight_text(2, 1, "gpu0: 0F0 0SEND_F0 0RECV_B0 0B0\ngpu1: 1RECV_F0 1F0 1B0 1SEND_B0\n"),
      costs);
  CHECK(told(path) ==
        "0F0 0-1, 0SEND_F0 1-5, 0SEND_F0 travels 5-7, 1F0 7-8, 1B0 8-10, 1SEND_B0 10-14, "
        "1SEND_B0 travels 14-16, 0B0 16-18");
  CHECK(told(shares(path)) == "F 2, B 4, link 8, latency 4");
}

TEST_CASE("waiting for a shared link is a piece of its own") {
  Costs costs = uniform_costs(3, 3, Time{1}, Time{1}, Time{1}, Time{4});
  costs.edges = {{{0, 2}, Bytes{4}, Bytes{4}}, {{1, 2}, Bytes{4}, Bytes{4}}};
  costs.network.resources = {"bus"};
  for (Route& route : costs.network.routes) {
    if (!route.is_free()) route.resources = {0};
  }
  const std::string text = straight_text(3, 1,
                                         "gpu0: 0F0 0SEND_F0 0RECV_B0 0B0\n"
                                         "gpu1: 1F0 1SEND_F0 1RECV_B0 1B0\n"
                                         "gpu2: 2RECV_F0 2RECV_F0.1 2F0 2B0 2SEND_B0 2SEND_B0.1\n",
                                         "edges: 0>2 1>2\n");
  const std::vector<PathPiece> path = path_of(text, costs);
  CHECK(told(path) ==
        "1F0 0-1, 1SEND_F0 queues 1-5, 1SEND_F0 5-9, 2F0 9-10, 2B0 10-12, 2SEND_B0 12-16, "
        "2SEND_B0.1 16-20, 1B0 20-22");
  CHECK(told(shares(path)) == "F 2, B 4, link 12, queue 4");
}

TEST_CASE("a program that takes no time has no path") {
  CHECK(path_of(straight_text(1, 1, "gpu0: 0F0 0B0\n"), uniform_costs(1, 1, Time{}, Time{}, Time{}))
            .empty());
}

TEST_CASE("random programs: the path goes from 0 to the makespan without a gap, over real spans") {
  test::RandomPrograms random(81);
  for (int i = 0; i < 400; ++i) {
    const test::RandomProgram made = random.make(i % 2 == 0);
    const test::Simulated ran = test::simulated(complete(made.program, made.costs), made.costs);
    CAPTURE(print(ran.program));
    const std::vector<PathPiece> path = critical_path(ran.graph, ran.times);
    CAPTURE(told(path));
    std::map<Op, Span> span;
    for (std::size_t lane = 0; lane < ran.timeline.lanes.size(); ++lane) {
      for (const Span& one : ran.timeline.lanes[lane]) span[one.op] = one;
    }
    Time at{};
    bool right = true;
    for (const PathPiece& piece : path) {
      right = right && piece.start == at && piece.end > piece.start;
      at = piece.end;
      const Span& of = span[piece.op];
      switch (piece.kind) {
        case PathPiece::Kind::task:
          right = right && piece.start == of.start && piece.end == of.end;
          break;
        case PathPiece::Kind::queue:
          right = right && piece.end == of.start;
          break;
        case PathPiece::Kind::latency:
          right = right && piece.start == of.end;
          break;
      }
    }
    CHECK(right);
    CHECK(at == makespan(ran.times));
    Time sum{};
    for (const PathShare& share : shares(path)) sum += share.time;
    CHECK(sum == makespan(ran.times));
  }
}

TEST_CASE("random programs: where nothing is shared, every task on the path has no slack") {
  test::RandomPrograms random(82);
  for (int i = 0; i < 200; ++i) {
    const test::RandomProgram made = random.make(false);
    const test::Simulated ran = test::simulated(complete(made.program, made.costs), made.costs);
    const std::vector<Time> spare = slack(ran.graph, ran.times);
    for (const PathPiece& piece : critical_path(ran.graph, ran.times)) {
      CHECK(piece.kind != PathPiece::Kind::queue);
      for (std::uint32_t task = 0; task < ran.graph.tasks(); ++task) {
        if (ran.graph.op[task] == piece.op) CHECK(spare[task] == Time{});
      }
    }
  }
}

}  // namespace
}  // namespace stageline::critical_path_tests
