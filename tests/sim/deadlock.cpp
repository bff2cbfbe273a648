// Does a program that cannot finish say why, in words?
#include <doctest/doctest.h>

#include <random>

#include "sim/base/errors.hpp"
#include "sim/deadlock.hpp"
#include "sim/lower/passes.hpp"
#include "sim/task_graph.hpp"
#include "tests/random_program.hpp"
#include "tests/text.hpp"

namespace stageline::deadlock_tests {
namespace {

using test::straight_text;

struct Told {
  std::string words;
  std::string cycle;
  std::string figure;
};

Told told(const std::string& text) {
  const Program program = parse_program(text);
  validate(program);
  const auto devices = static_cast<int>(program.devices.size());
  try {
    compile(program, uniform_costs(program.stages(), devices, Time{1}, Time{1}, Time{1}, Time{1}));
  } catch (const Deadlock& deadlock) {
    Told all{deadlock.what(), "", deadlock.figure};
    for (const Op one : deadlock.cycle) all.cycle += (all.cycle.empty() ? "" : " ") + print(one);
    return all;
  }
  return {"", "", ""};
}

TEST_CASE("the cycle is told from op to op, and marked in the lists") {
  const Told all = told(straight_text(3, 2,
                                      "gpu0: 0F0 0F1 0B0 0B1\n"
                                      "gpu1: 1F0 1B0 1F1 1B1\n"
                                      "gpu2: 2F0 2F1 2B0 2B1\n"));
  CHECK(all.words ==
        "the program cannot finish: 1B0 needs 2B0, which comes after 2F1, which needs 1F1, which "
        "comes after 1B0");
  CHECK(all.cycle == "1B0 2B0 2F1 1F1");
  CHECK(all.figure ==
        "gpu0 | 0F0 0F1 0B0 0B1\n"
        "gpu1 | 1F0 >1B0< >1F1< 1B1\n"
        "gpu2 | 2F0 >2F1< >2B0< 2B1\n");
}

TEST_CASE("a backward before its own forward waits for itself") {
  const Told all = told(straight_text(1, 1, "gpu0: 0B0 0F0\n"));
  CHECK(all.words == "the program cannot finish: 0B0 needs 0F0, which comes after 0B0");
  CHECK(all.cycle == "0B0 0F0");
  CHECK(all.figure == "gpu0 | >0B0< >0F0<\n");
}

TEST_CASE("ops far from the culprits are left out of the lists") {
  std::string gpu0 = "gpu0:";
  for (int m = 0; m < 20; ++m) gpu0 += " 0F" + std::to_string(m) + " 0B" + std::to_string(m);
  gpu0 += " 0B20 0F20";
  for (int m = 21; m < 41; ++m) gpu0 += " 0F" + std::to_string(m) + " 0B" + std::to_string(m);
  CHECK(told(straight_text(1, 41, gpu0 + "\n")).figure ==
        "gpu0 | … 0F17 0B17 0F18 0B18 0F19 0B19 >0B20< >0F20< 0F21 0B21 0F22 0B22 0F23 0B23 …\n");
}

TEST_CASE("a recomputation or an update in the wrong place is told too") {
  CHECK(told(straight_text(1, 1, "gpu0: 0F0 0B0 0R0\n")).words ==
        "the program cannot finish: 0B0 needs 0R0, which comes after 0B0");
  CHECK(told(straight_text(1, 2, "gpu0: 0F0 0F1 0B0 0U0 0B1\n")).words ==
        "the program cannot finish: 0U0 needs 0B1, which comes after 0U0");
  CHECK(told(straight_text(2, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1W0 1I0\n")).words ==
        "the program cannot finish: 1W0 needs 1I0, which comes after 1W0");
  CHECK(
      told(straight_text(2, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1W0 1I0\n", "independent_w: 1\n")).words ==
      "");
}

TEST_CASE("messages that wait for each other's lanes are told") {
  // gpu0 sends micro-batch 1 first, but makes it last.
  const Told all =
      told(straight_text(2, 2,
                         "gpu0: 0SEND_F1 0F0 0SEND_F0 0RECV_B0 0B0 0F1 0RECV_B1 0B1\n"
                         "gpu1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n"));
  CHECK(all.words ==
        "the program cannot finish: 0B0 needs 1SEND_B0, which needs 1B0, which comes after 1F0, "
        "which needs 0SEND_F0, which comes after 0SEND_F1, which needs 0F1, which comes after "
        "0B0");
}

TEST_CASE("an overlapped pair whose second half needs the first is refused") {
  CHECK_THROWS_WITH_AS(told(straight_text(1, 1, "gpu0: (0F0;0B0)OVERLAP_F_B\n")),
                       "gpu0, op 0 (0F0): 0F0 and 0B0 run as one, and one of them needs the other",
                       ProgramError);
}

TEST_CASE("a pair is told as a pair") {
  const Told all = told(straight_text(2, 2,
                                      "gpu0: 0F0 (0F1;0B0)OVERLAP_F_B 0B1\n"
                                      "gpu1: 1F0 1F1 1B0 1B1\n"));
  CHECK(all.words ==
        "the program cannot finish: (0F1;0B0) needs 1B0, which comes after 1F1, which needs 0F1, "
        "half of (0F1;0B0)");
  CHECK(all.cycle == "0F1 1B0 1F1");
}

TEST_CASE("two stuck replicas wait for each other's gradients") {
  const Told all = told(
      "stageline-program 1\nmicrobatches: 2\nsteps: 2\nstage 0: a+b\n"
      "a: 0F0 0B0 0U0 0F2 0B2 0U1\nb: 0F1 0F3 0B3 0U1.1 0B1 0U0.1\n");
  CHECK(all.words ==
        "the program cannot finish: 0U0 needs 0B1, which comes after 0U1.1, which needs 0B2, "
        "which comes after 0U0");
}

// Each op of the cycle waits for the next, by the table or by its lane, and the last for the first.
TEST_CASE("the told cycle is a cycle, in random programs with two ops exchanged") {
  test::RandomPrograms random(51);
  std::mt19937 places(52);
  int stuck = 0;
  for (int i = 0; i < 1500; ++i) {
    const test::RandomProgram made = random.make(false);
    Program program = complete(made.program, made.costs);
    auto& list = program.ops[places() % program.ops.size()];
    if (list.size() < 2) continue;
    const std::size_t a = places() % list.size();
    const std::size_t b = places() % list.size();
    const bool marked = list[a].overlapped || list[b].overlapped ||
                        (a > 0 && list[a - 1].overlapped) || (b > 0 && list[b - 1].overlapped);
    if (a == b || marked) continue;
    std::swap(list[a], list[b]);
    const bool finishes = !test::reference(program, made.costs).empty();
    try {
      compile(program, made.costs);
      CHECK(finishes);
    } catch (const Deadlock& deadlock) {
      CHECK_FALSE(finishes);
      ++stuck;
      const test::Table table(program);
      for (std::size_t n = 0; n < deadlock.cycle.size(); ++n) {
        const Op waits = test::plain(deadlock.cycle[n]);
        const Op next = test::plain(deadlock.cycle[(n + 1) % deadlock.cycle.size()]);
        const std::vector<Op> needs = table.needs(waits);
        bool holds = std::find(needs.begin(), needs.end(), next) != needs.end();
        for (const auto& ops : program.ops) {
          const auto at = [&](Op one) {
            return std::find_if(ops.begin(), ops.end(),
                                [&](Op other) { return test::plain(other) == one; });
          };
          const auto later = at(waits);
          const auto sooner = at(next);
          if (later == ops.end() || sooner == ops.end()) continue;
          holds = holds || (sooner < later && lane_of(waits.kind) == lane_of(next.kind));
          // Halves of a pair wait for what the other needs.
          const auto half = later->overlapped ? later + 1 : later;
          const std::vector<Op> also = table.needs(test::plain(*half));
          holds = holds || std::find(also.begin(), also.end(), next) != also.end();
        }
        if (!holds) {
          for (const auto& ops : program.ops) {
            for (std::size_t k = 0; k + 1 < ops.size(); ++k) {
              if (!ops[k].overlapped || test::plain(ops[k]) != waits) continue;
              const std::vector<Op> also = table.needs(ops[k + 1]);
              holds = holds || std::find(also.begin(), also.end(), next) != also.end();
            }
          }
        }
        CAPTURE(deadlock.what());
        CHECK(holds);
      }
    }
  }
  CHECK(stuck > 300);
}

// gpu1 gives up waiting for 0SEND_F2, whose RECV is past when 1F2 waits for the copy of 1F0's
// stash.
TEST_CASE("what an op waits for is not the message that was given up") {
  const Program program =
      parse_program(straight_text(2, 3,
                                  "gpu0: 0F0 0F1 0F2 0SEND_F2 0SEND_F0 0SEND_F1 0RECV_B0 0B0 "
                                  "0RECV_B1 0B1 0RECV_B2 0B2\n"
                                  "gpu1: 1RECV_F0 1RECV_F1 1RECV_F2 1F2 1F0 1OFFLOAD0 1F1 "
                                  "1PREFETCH0 1B0 1SEND_B0 1B1 1SEND_B1 1B2 1SEND_B2\n",
                                  "messages: blocking\ncopies: full\n"));
  REQUIRE_NOTHROW(validate(program));
  const std::vector<Deadlock> all = deadlocks_of(program, unit_costs(program), 10);
  REQUIRE(all.size() == 2);
  CHECK(std::string(all[0].what()) ==
        "the program cannot finish: 0SEND_F2 waits for 1RECV_F2, which comes after 1RECV_F0, which "
        "waits for 0SEND_F0, which comes after 0SEND_F2");
  CHECK(std::string(all[1].what()) ==
        "the program cannot finish: 1OFFLOAD0 needs 1F0, which comes after 1F2, which needs "
        "1OFFLOAD0");
}

TEST_CASE("a copy is no second half of a pair") {
  Program program = parse_program(straight_text(2, 2,
                                                "gpu0: 0F0 0OFFLOAD0 0F1 0PREFETCH0 0B0 0B1\n"
                                                "gpu1: 1F0 1B0 1F1 1B1\n",
                                                "messages: blocking\n"));
  program.ops[0][2].overlapped = 1;  // (0F1;0PREFETCH0), which the text cannot say
  CHECK_THROWS_WITH_AS(complete(program, unit_costs(program)),
                       "gpu0 (0F1): an overlapped op needs a second compute op right behind it",
                       ProgramError);
}

// Moves one op of the list to another place, wherever that is; pairs stay pairs.
void move_one(std::vector<Op>& list, std::mt19937& random) {
  if (list.size() < 3) return;
  const std::size_t from = random() % list.size();
  const std::size_t to = random() % (list.size() - 1);
  const Op op = list[from];
  if (op.overlapped || (from > 0 && list[from - 1].overlapped)) return;
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(from));
  const bool splits = to > 0 && list[to - 1].overlapped;
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(splits ? to - 1 : to), op);
}

TEST_CASE("the search for all deadlocks ends for any order of the lists") {
  test::RandomPrograms random(91);
  std::mt19937 places(92);
  int stuck = 0;
  int several = 0;
  for (int i = 0; i < 300; ++i) {
    test::RandomProgram made = random.make(false);
    made.program.settings.messages = static_cast<Messages>(i % 3);
    Program program = complete(made.program, made.costs);
    if (i % 2 == 0) program.settings.copies = Copies::full;
    for (int k = 0; k < 2 + i % 5; ++k)
      move_one(program.ops[places() % program.ops.size()], places);
    CAPTURE(print(program));
    REQUIRE_NOTHROW(validate(program));
    const std::vector<Deadlock> all = deadlocks_of(program, made.costs, 10);
    for (const Deadlock& one : all) CHECK(!one.cycle.empty());
    several += all.size() > 1 ? 1 : 0;
    stuck += all.empty() ? 0 : 1;
    bool finishes = true;
    try {
      compile(program, made.costs);
    } catch (const Deadlock&) {
      finishes = false;
    }
    if (finishes) CHECK(all.empty());
  }
  CHECK(stuck > 30);
  CHECK(several > 3);
}

}  // namespace
}  // namespace stageline::deadlock_tests
