// Is a replicated pipeline the same pipeline several times, with joint updates?
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/random_program.hpp"
#include "tests/schedules/replicas.hpp"
#include "tests/text.hpp"
#include "tests/thorough.hpp"

namespace stageline::replicate_tests {
namespace {

using test::complaint;
using test::lists;
using test::straight_text;

const std::string two_stages = straight_text(2, 2,
                                             "gpu0: 0F0 0F1 0B0 0B1 0U0\n"
                                             "gpu1: 1F0 1B0 1F1 1B1 1U0\n");

std::string refusal(const std::string& text, int replicas) {
  return complaint<UsageError>([&] { replicated(parse_program(text), replicas); });
}

TEST_CASE("device r·p + d runs what device d runs, on every n-th micro-batch") {
  const Program program = replicated(parse_program(two_stages), 2);
  CHECK(program.microbatches == 4);
  CHECK(program.steps == 1);
  CHECK(lists(program) ==
        "r0.gpu0: 0F0 0F2 0B0 0B2 0U0\n"
        "r0.gpu1: 1F0 1B0 1F2 1B2 1U0\n"
        "r1.gpu0: 0F1 0F3 0B1 0B3 0U0.1\n"
        "r1.gpu1: 1F1 1B1 1F3 1B3 1U0.1\n");
  CHECK(program.placement.stage[0].replicas == std::vector<int>{0, 2});
  CHECK(program.placement.stage[1].replicas == std::vector<int>{1, 3});
  CHECK_NOTHROW(validate(program));
  CHECK(lists(add_reductions(program)) ==
        "r0.gpu0: 0F0 0F2 0B0 0B2 0REDUCE_GRAD0 0U0\n"
        "r0.gpu1: 1F0 1B0 1F2 1B2 1REDUCE_GRAD0 1U0\n"
        "r1.gpu0: 0F1 0F3 0B1 0B3 0REDUCE_GRAD0.1 0U0.1\n"
        "r1.gpu1: 1F1 1B1 1F3 1B3 1REDUCE_GRAD0.1 1U0.1\n");
}

TEST_CASE("a stage that has replicas keeps its alternation") {
  const Program program =
      replicated(parse_program("stageline-program 1\nmicrobatches: 2\nstage 0: a+b\nstage 1: b+a\n"
                               "a: 0F0 1F1 1B1 0B0 0U0 1U0.1\nb: 0F1 1F0 1B0 0B1 1U0 0U0.1\n"),
                 3);
  CHECK(program.placement.stage[0].replicas == std::vector<int>{0, 2, 4, 1, 3, 5});
  CHECK(program.placement.stage[1].replicas == std::vector<int>{1, 3, 5, 0, 2, 4});
  CHECK(lists(program) ==
        "r0.a: 0F0 1F3 1B3 0B0 0U0 1U0.3\n"
        "r0.b: 0F3 1F0 1B0 0B3 1U0 0U0.3\n"
        "r1.a: 0F1 1F4 1B4 0B1 0U0.1 1U0.4\n"
        "r1.b: 0F4 1F1 1B1 0B4 1U0.1 0U0.4\n"
        "r2.a: 0F2 1F5 1B5 0B2 0U0.2 1U0.5\n"
        "r2.b: 0F5 1F2 1B2 0B5 1U0.2 0U0.5\n");
  CHECK_NOTHROW(validate(program));
}

TEST_CASE("messages stay within their replica, and windows are as long for each") {
  const std::string text = straight_text(2, 3,
                                         "gpu0: 0F0 0F1 0B0 0F2 0B1 0B2\n"
                                         "gpu1: 1F0 1B0 1F1 1B1 1F2 1B2\n",
                                         "weights: stash\nwindows: 2 -\n");
  const Program program = replicated(add_transfers(parse_program(text)), 2);
  CHECK(program.settings.window == std::vector<int>{4, 0});
  CHECK_NOTHROW(validate(program));
  CHECK(test::contains(lists(program),
                       "r1.gpu0: 0F1 0SEND_F1 0F3 0SEND_F3 0RECV_B1 0B1 0F5 0SEND_F5 "));
}

TEST_CASE("devices have the names that are given") {
  const Program one = parse_program(two_stages);
  CHECK(replicated(one, 2, {"a", "b", "c", "d"}).devices ==
        std::vector<std::string>{"a", "b", "c", "d"});
  CHECK(complaint<UsageError>([&] {
          replicated(one, 2, {"a", "b", "c"});
        }) == "2 replicas of 2 devices need 4 names, and 3 are given");
}

TEST_CASE("what a replicated stage cannot do is refused, and one replica is the program itself") {
  const std::string delayed =
      straight_text(1, 2, "gpu0: 0F0 0B0 0F1 0B1\n", "weights: stash\ndelays: 1\n");
  CHECK(refusal(delayed, 2) ==
        "the pipeline cannot have 2 replicas: F of stage 0 waits for the update of 2 micro-batches "
        "before (delays), and 2 replicas have one update for 2 micro-batches");
  const std::string lockstep = straight_text(1, 2, "gpu0: 0F0 0B0 0F1 0B1\n", "clock: lockstep\n");
  CHECK(test::contains(refusal(lockstep, 3), "in lockstep (clock: lockstep) a cycle has one"));
  const std::string chunks = straight_text(1, 2, "gpu0: 0F0 0F1 0B1 0B0\n", "sequence_chunks: 2\n");
  CHECK(test::contains(refusal(chunks, 2), "the 2 chunks of a sequence"));
  const std::string apart =
      "stageline-program 1\nmicrobatches: 1\nstage 0: F=a I=b W=b\nstage 1: b\n"
      "a: 0F0\nb: 1F0 1B0 0B0\n";
  CHECK(test::contains(refusal(apart, 2), "stage 0 has F, I and W on different devices"));
  CHECK(refusal(two_stages, 0) == "a pipeline has at least one replica, not 0");
  CHECK(refusal(two_stages, 128) ==
        "stage 0 would live on 1 × 128 = 128 devices, and a stage has at most 127");
  CHECK_NOTHROW(validate(replicated(parse_program(two_stages), 127)));
  for (const std::string& text : {delayed, lockstep, chunks, apart, two_stages}) {
    CHECK(replicated(parse_program(text), 1) == parse_program(text));
  }
  Program long_one = parse_program(two_stages);
  long_one.steps = 1 << 20;
  CHECK(test::contains(complaint<UsageError>([&] { replicated(long_one, 5); }),
                       "5 replicas × 2097152 micro-batches × 2 stages are more than the"));
}

TEST_CASE("any program has valid replicas that run as it does") {
  test::RandomPrograms programs(18);
  int tried = 0;
  for (int i = 0; i < (test::thorough ? 600 : 100); ++i) {
    test::RandomProgram made = programs.make(/*shared=*/false);
    // Free links: a reduction takes its turn behind messages, which one pipeline alone has not.
    for (Route& free_route : made.costs.network.routes) free_route = {};
    const Program& program = made.program;
    const Costs& costs = made.costs;
    if (program.settings.sequence_chunks > 1) continue;
    const int replicas = 2 + i % 2;
    CAPTURE(print(program));
    CAPTURE(replicas);
    CHECK(replicated(program, 1) == program);
    const Program several = replicated(program, replicas);
    REQUIRE_NOTHROW(validate(several));
    CHECK(parse_program(print(several)) == several);
    CHECK(add_updates(several) == replicated(add_updates(program), replicas));
    const Program one = complete(program, costs);
    const Costs costs_of_all = test::side_by_side(costs, replicas);
    const Program all = complete(several, costs_of_all);
    REQUIRE_NOTHROW(validate(all));
    ++tried;
    CHECK(test::first_to_differ(test::starts_of(one, costs), test::starts_of(all, costs_of_all),
                                static_cast<int>(program.devices.size()), replicas) == "");
  }
  CHECK(tried > 60);
}

}  // namespace
}  // namespace stageline::replicate_tests
