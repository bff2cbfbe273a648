// What happens when messages block, one by one or in batches?
#include <doctest/doctest.h>

#include "sim/analysis/metrics.hpp"
#include "sim/analysis/steady_state.hpp"
#include "sim/base/index.hpp"
#include "sim/cluster.hpp"
#include "sim/deadlock.hpp"
#include "sim/rules.hpp"
#include "tests/random_program.hpp"
#include "tests/schedules/brute_force.hpp"
#include "tests/schedules/stream_reference.hpp"
#include "tests/text.hpp"

namespace stageline::messages_tests {
namespace {

using test::contains;
using test::straight_text;

// F takes 2, B 4; messages 1 and a latency.
Costs costs_of(int stages, Time latency = Time{}) {
  Costs costs = uniform_costs(stages, stages, Time{2}, Time{2}, Time{2}, Time{1});
  for (Route& route : costs.network.routes) {
    if (!route.is_free()) route.latency = latency;
  }
  return costs;
}

std::string ran(const std::string& text, const Costs& costs) {
  return test::lanes(test::simulated(parse_program(text), costs).timeline);
}

std::string two(const std::string& messages) {
  return straight_text(2, 2,
                       "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                       "gpu1: 1RECV_F0 1F0 1B0 1RECV_F1 1SEND_B0 1F1 1B1 1SEND_B1\n",
                       messages);
}

TEST_CASE("the setting is read and written, and left out where it is async") {
  const Program program = parse_program(two("messages: batched\n"));
  CHECK(program.settings.messages == Messages::batched);
  CHECK(contains(print(program), "\nmessages: batched\n"));
  CHECK(parse_program(print(program)) == program);
  CHECK_FALSE(contains(print(parse_program(two("messages: async\n"))), "messages:"));
  CHECK(test::complaint<ProgramError>([] { parse_program(two("messages: blocked\n")); }) ==
        "line 3, column 11: \"blocked\" is not one of async, blocking, batched");
}

//            0         1         2
//            0123456789012345678901
//   gpu0     0011      aaaa  bbbb     0, 1: F; a, b: B; messages beside, from 2, 4, 9 and 15
//   gpu1        00aaaa11bbbb
TEST_CASE("async: a message takes no device's time") {
  CHECK(ran(two(""), costs_of(2)) ==
        "gpu0 compute: 0F0 0-2, 0F1 2-4, 0B0 10-14, 0B1 16-20\n"
        "gpu0 send: 0SEND_F0 2-3, 0SEND_F1 4-5\n"
        "gpu0 receive: 0RECV_B0 9-10, 0RECV_B1 15-16\n"
        "gpu1 compute: 1F0 3-5, 1B0 5-9, 1F1 9-11, 1B1 11-15\n"
        "gpu1 send: 1SEND_B0 9-10, 1SEND_B1 15-16\n"
        "gpu1 receive: 1RECV_F0 2-3, 1RECV_F1 4-5\n");
}

//            0         1         2
//            0123456789012345678901
//   gpu0     00>11....><aaaa..<bbbb   . waits for the other end; > sends, < receives
//   gpu1     ..<00aaaa<>11bbbb>
TEST_CASE("blocking: both ends wait for each other, and for nothing else meanwhile") {
  CHECK(ran(two("messages: blocking\n"), costs_of(2)) ==
        "gpu0 compute: 0F0 0-2, 0F1 3-5, 0B0 11-15, 0B1 18-22\n"
        "gpu0 send: 0SEND_F0 2-3, 0SEND_F1 9-10\n"
        "gpu0 receive: 0RECV_B0 10-11, 0RECV_B1 17-18\n"
        "gpu1 compute: 1F0 3-5, 1B0 5-9, 1F1 11-13, 1B1 13-17\n"
        "gpu1 send: 1SEND_B0 10-11, 1SEND_B1 17-18\n"
        "gpu1 receive: 1RECV_F0 2-3, 1RECV_F1 9-10\n");
}

//   gpu0     00>11....xaaaa..<bbbb    x both ways at once
//   gpu1     ..<00aaaax11bbbb>
TEST_CASE("batched: neighbours go together") {
  CHECK(ran(two("messages: batched\n"), costs_of(2)) ==
        "gpu0 compute: 0F0 0-2, 0F1 3-5, 0B0 10-14, 0B1 17-21\n"
        "gpu0 send: 0SEND_F0 2-3, 0SEND_F1 9-10\n"
        "gpu0 receive: 0RECV_B0 9-10, 0RECV_B1 16-17\n"
        "gpu1 compute: 1F0 3-5, 1B0 5-9, 1F1 10-12, 1B1 12-16\n"
        "gpu1 send: 1SEND_B0 9-10, 1SEND_B1 16-17\n"
        "gpu1 receive: 1RECV_F0 2-3, 1RECV_F1 9-10\n");
}

TEST_CASE("a sender goes on when the message has left, a receiver when it is there") {
  CHECK(ran(two("messages: blocking\n"), costs_of(2, Time{3})) ==
        "gpu0 compute: 0F0 0-2, 0F1 3-5, 0B0 20-24, 0B1 28-32\n"
        "gpu0 send: 0SEND_F0 2-3, 0SEND_F1 12-13\n"
        "gpu0 receive: 0RECV_B0 19-20, 0RECV_B1 27-28\n"
        "gpu1 compute: 1F0 6-8, 1B0 8-12, 1F1 17-19, 1B1 19-23\n"
        "gpu1 send: 1SEND_B0 16-17, 1SEND_B1 24-25\n"
        "gpu1 receive: 1RECV_F0 5-6, 1RECV_F1 15-16\n");
}

TEST_CASE("two messages of one batch share a wire in turns, and go side by side on two") {
  const std::string lists =
      "gpu0: 0F0 0F1 0SEND_F0 0SEND_F1 0RECV_B0 0RECV_B1 0B0 0B1\n"
      "gpu1: 1RECV_F0 1RECV_F1 1F0 1F1 1B0 1B1 1SEND_B0 1SEND_B1\n";
  CHECK(ran(straight_text(2, 2, lists, "messages: batched\n"), costs_of(2)) ==
        "gpu0 compute: 0F0 0-2, 0F1 2-4, 0B0 20-24, 0B1 24-28\n"
        "gpu0 send: 0SEND_F0 4-5, 0SEND_F1 5-6\n"
        "gpu0 receive: 0RECV_B0 18-19, 0RECV_B1 19-20\n"
        "gpu1 compute: 1F0 6-8, 1F1 8-10, 1B0 10-14, 1B1 14-18\n"
        "gpu1 send: 1SEND_B0 18-19, 1SEND_B1 19-20\n"
        "gpu1 receive: 1RECV_F0 4-5, 1RECV_F1 5-6\n");
  Costs wide = costs_of(2);
  for (Route& route : wide.network.routes) route.resources.clear();
  const std::string side_by_side = ran(straight_text(2, 2, lists, "messages: batched\n"), wide);
  CHECK(contains(side_by_side, "gpu0 send: 0SEND_F0 4-5, 0SEND_F1 4-5\n"));
}

std::string deadlock(const std::string& text, int stages) {
  const Program program = parse_program(text);
  validate(program);
  return test::complaint<Deadlock>([&] { compile(program, costs_of(stages)); });
}

TEST_CASE("two ends that both send first wait for ever, unless they are batched") {
  const std::string lists =
      "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
      "gpu1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n";
  CHECK(deadlock(straight_text(2, 2, lists), 2) == "");
  CHECK(deadlock(straight_text(2, 2, lists, "messages: batched\n"), 2) == "");
  CHECK(deadlock(straight_text(2, 2, lists, "messages: blocking\n"), 2) ==
        "the program cannot finish: 0SEND_F1 waits for 1RECV_F1, which comes after 1SEND_B0, "
        "which waits for 0RECV_B0, which comes after 0SEND_F1");
}

TEST_CASE("batches wait in a circle, too") {
  const std::string lists =
      "gpu0: 0F0 0F1 0SEND_F1 0RECV_B1 0B1 0SEND_F0 0RECV_B0 0B0\n"
      "gpu1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n";
  CHECK(deadlock(straight_text(2, 2, lists, "messages: batched\n"), 2) ==
        "the program cannot finish: the batch (0SEND_F1 0RECV_B1) waits for 1RECV_F1, "
        "which comes after 1RECV_F0, which waits for 0SEND_F0, "
        "which comes after the batch (0SEND_F1 0RECV_B1)");
}

TEST_CASE("a message ahead of what it carries, and a reader ahead of its message") {
  const auto told = [](const std::string& gpu0, const std::string& gpu1) {
    return deadlock(
        straight_text(2, 1, "gpu0: " + gpu0 + "\ngpu1: " + gpu1 + "\n", "messages: blocking\n"), 2);
  };
  CHECK(told("0SEND_F0 0F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0") ==
        "the program cannot finish: 0SEND_F0 needs 0F0, which comes after 0SEND_F0");
  CHECK(told("0F0 0SEND_F0 0RECV_B0 0B0", "1F0 1RECV_F0 1B0 1SEND_B0") ==
        "the program cannot finish: 1F0 needs 1RECV_F0, which comes after 1F0");
}

TEST_CASE("waiting for a message is idle time on a link, a wait for the other end is not") {
  const test::Simulated run =
      test::simulated(parse_program(two("messages: blocking\n")), costs_of(2));
  const Metrics metrics = metrics_of(run.program, run.graph, run.times);
  // Without time on the wire 1F1 and 0B0 start at 8, 0B1 at 14: 18 in all.
  CHECK(metrics.makespan == Time{22});
  CHECK(metrics.makespan_free_links == Time{18});
  CHECK(metrics.device[0].busy == Time{12});
  CHECK(metrics.device[1].busy == Time{12});
  Time sum{};
  for (const PathPiece& piece : critical_path(run.graph, run.times)) {
    CHECK(piece.start == sum);
    sum = piece.end;
  }
  CHECK(sum == Time{22});
}

// ---- 1F1B as Megatron has it

TEST_CASE("transfers of 1F1B become Megatron's pairs") {
  const std::string compute =
      "gpu0: 0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
      "gpu1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n"
      "gpu2: 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3\n";
  const Transferred batched =
      with_transfers(parse_program(straight_text(3, 4, compute, "messages: batched\n")));
  CHECK(batched.deadlock == "");
  CHECK(test::lists(batched.program) ==
        "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2 0RECV_B0 0B0 0F3 0RECV_B1 0SEND_F3 0B1 "
        "0RECV_B2 0B2 0RECV_B3 0B3\n"
        "gpu1: 1RECV_F0 1F0 1RECV_F1 1SEND_F0 1F1 1SEND_F1 1RECV_B0 1B0 1RECV_F2 1SEND_B0 1F2 "
        "1RECV_B1 1SEND_F2 1B1 1SEND_B1 1RECV_F3 1F3 1RECV_B2 1SEND_F3 1B2 1SEND_B2 1RECV_B3 1B3 "
        "1SEND_B3\n"
        "gpu2: 2RECV_F0 2F0 2B0 2RECV_F1 2SEND_B0 2F1 2B1 2SEND_B1 2RECV_F2 2F2 2B2 2SEND_B2 "
        "2RECV_F3 2F3 2B3 2SEND_B3\n");
  const Transferred blocking =
      with_transfers(parse_program(straight_text(3, 4, compute, "messages: blocking\n")));
  CHECK(blocking.deadlock == "");
  CHECK(blocking.program.ops == batched.program.ops);
}

TEST_CASE("an order that would deadlock is told, and another one taken") {
  // gpu1 wants micro-batch 1 first.
  const std::string text =
      straight_text(2, 2, "gpu0: 0F0 0F1 0B1 0B0\ngpu1: 1F1 1B1 1F0 1B0\n", "messages: blocking\n");
  const Transferred done = with_transfers(parse_program(text));
  CHECK(done.deadlock ==
        "the program cannot finish: 0SEND_F0 waits for 1RECV_F0, which comes after 1RECV_F1, "
        "which waits for 0SEND_F1, which comes after 0SEND_F0");
  CHECK(test::lists(done.program) ==
        "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B1 0B1 0RECV_B0 0B0\n"
        "gpu1: 1RECV_F0 1RECV_F1 1F1 1B1 1SEND_B1 1F0 1B0 1SEND_B0\n");
  CHECK(test::complaint<Deadlock>([&] { compile(done.program, costs_of(2)); }) == "");
}

// ---- against a slow simulator of the lists themselves

// Messages of one list exchanged at random: some of these finish.
void shuffle_messages(Program& program, std::mt19937& random) {
  for (auto& list : program.ops) {
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      const bool movable =
          cargo_of(list[i].kind) && !list[i + 1].overlapped &&
          (cargo_of(list[i + 1].kind) || i + 2 == list.size() || !list[i + 1].overlapped) &&
          !(i > 0 && list[i - 1].overlapped);
      if (movable && random() % 6 == 0) std::swap(list[i], list[i + 1]);
    }
  }
}

std::string difference(const Timeline& timeline, std::map<Op, test::When> when) {
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    if (lane % lane_kinds == as_size(LaneKind::receive)) continue;
    for (const Span& span : timeline.lanes[lane]) {
      const auto found = when.find(test::plain(span.op));
      if (found == when.end()) return print(span.op) + " is not in the reference";
      if (found->second.start != span.start || found->second.end != span.end) {
        return print(span.op) + " runs at another time";
      }
      when.erase(found);
    }
  }
  return when.empty() ? "" : print(when.begin()->first) + " is not in the timeline";
}

TEST_CASE("random programs run as the slow simulator says, or deadlock where it does") {
  test::RandomPrograms random(71);
  std::mt19937 places(72);
  int finished = 0;
  int stuck = 0;
  int waited = 0;
  for (int i = 0; i < 900; ++i) {
    test::RandomProgram made = random.make(false);
    made.program.settings.messages = i % 2 == 0 ? Messages::blocking : Messages::batched;
    Program program = complete(made.program, made.costs);
    if (i % 3 != 0) shuffle_messages(program, places);
    CAPTURE(print(program));
    REQUIRE_NOTHROW(validate(program));
    const std::map<Op, test::When> when = test::stream_reference(program, made.costs);
    try {
      const TaskGraph graph = compile(program, made.costs);
      REQUIRE(difference(timeline_of(program, graph, sweep(graph)), when) == "");
      CHECK(test::brute_force(graph).available == run(graph).available);
      if (!shares_resources(graph)) CHECK(run(graph).available == sweep(graph).available);
      ++finished;
      waited +=
          makespan(sweep(graph)) > metrics_of(program, graph, sweep(graph)).makespan_free_links;
    } catch (const Deadlock& deadlock) {
      const std::string words = deadlock.what();
      CAPTURE(words);
      CHECK(when.empty());
      CHECK(i % 3 != 0);  // nothing that a pass has put there deadlocks
      ++stuck;
    }
  }
  CHECK(finished > 500);
  CHECK(stuck > 40);
  CHECK(waited > 150);
}

TEST_CASE(
    "blocking is never faster than batched, nor batched than async, but for sends side by side") {
  test::RandomPrograms random(73);
  int strict = 0;
  for (int i = 0; i < 500; ++i) {
    test::RandomProgram made = random.make(false);
    // Messages that are all latency: then a send lane never keeps a second one waiting.
    for (Route& route : made.costs.network.routes) {
      route.bandwidth = Bandwidth{};
      route.resources.clear();
    }
    made.program.settings.messages = Messages::blocking;
    Program program = complete(made.program, made.costs);
    // Under async a reduction has its turn in the send lane, else it goes beside.
    const auto reduces = [](const std::vector<Op>& list) {
      return std::any_of(list.begin(), list.end(),
                         [](Op one) { return one.kind == OpKind::reduce_grad; });
    };
    if (std::any_of(program.ops.begin(), program.ops.end(), reduces)) continue;
    const auto time = [&](Messages messages) {
      program.settings.messages = messages;
      return makespan(sweep(compile(program, made.costs)));
    };
    CAPTURE(print(program));
    const Time async = time(Messages::async);
    const Time batched = time(Messages::batched);
    const Time blocking = time(Messages::blocking);
    CHECK(async <= batched);
    CHECK(batched <= blocking);
    strict += async < batched && batched < blocking ? 1 : 0;
  }
  CHECK(strict > 10);
}

TEST_CASE("the told cycle is a cycle where messages block") {
  test::RandomPrograms random(74);
  std::mt19937 places(75);
  int stuck = 0;
  for (int i = 0; i < 600; ++i) {
    test::RandomProgram made = random.make(false);
    made.program.settings.messages = i % 2 == 0 ? Messages::blocking : Messages::batched;
    Program program = complete(made.program, made.costs);
    shuffle_messages(program, places);
    try {
      compile(program, made.costs);
    } catch (const Deadlock& deadlock) {
      ++stuck;
      const std::string words = deadlock.what();
      CAPTURE(words);
      const test::Table table(program);
      const StageGraph stages = stage_graph(program);
      const auto needs = [&](Op a, Op b) {
        const std::vector<Op> all = table.needs(a);
        // A reader waits for its own device's RECV.
        const bool reads = cargo_of(b.kind) && !is_send(b.kind);
        return std::find(all.begin(), all.end(), reads ? other_end(stages, b) : b) != all.end();
      };
      for (std::size_t n = 0; n < deadlock.cycle.size(); ++n) {
        const Op waits = test::plain(deadlock.cycle[n]);
        const Op next = test::plain(deadlock.cycle[(n + 1) % deadlock.cycle.size()]);
        bool holds = needs(waits, next);
        if (cargo_of(waits.kind)) holds = holds || other_end(stages, waits) == next;
        for (const auto& ops : program.ops) {
          const auto at = [&](Op one) {
            return std::find_if(ops.begin(), ops.end(),
                                [&](Op other) { return test::plain(other) == one; });
          };
          const auto later = at(waits);
          const auto sooner = at(next);
          if (later == ops.end()) continue;
          if (later->overlapped) holds = holds || needs(test::plain(*(later + 1)), next);
          holds = holds || (sooner != ops.end() && sooner < later);
          // Of one batch each waits for what any of them waits for.
          auto first = later;
          while (first != ops.begin() && cargo_of((first - 1)->kind)) --first;
          for (auto one = first; one != ops.end() && cargo_of(one->kind); ++one) {
            holds = holds || *one == next || other_end(stages, *one) == next;
          }
        }
        CHECK(holds);
      }
    }
  }
  CHECK(stuck > 60);
}

TEST_CASE("looking for all deadlocks tells each, the first as compile does") {
  const std::string text = straight_text(2, 4,
                                         "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0F2 "
                                         "0SEND_F2 0RECV_B1 0B1 0F3 0SEND_F3 0RECV_B2 "
                                         "0B2 0RECV_B3 0B3\n"
                                         "gpu1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 "
                                         "1SEND_B1 1RECV_F2 1F2 1B2 1SEND_B2 1RECV_F3 "
                                         "1F3 1B3 1SEND_B3\n",
                                         "messages: blocking\n");
  const Program program = parse_program(text);
  const std::vector<Deadlock> all = deadlocks_of(program, costs_of(2), 10);
  REQUIRE(all.size() > 1);
  CHECK(std::string(all[0].what()) == deadlock(text, 2));
  CHECK(deadlocks_of(program, costs_of(2), 1).size() == 1);
  CHECK(deadlocks_of(parse_program(two("")), costs_of(2), 10).empty());
}

}  // namespace
}  // namespace stageline::messages_tests
