// Where do R, OFFLOAD and PREFETCH go, and when may they start?
#include <doctest/doctest.h>

#include "sim/analysis/memory.hpp"
#include "sim/base/index.hpp"
#include "sim/lower/passes.hpp"
#include "tests/text.hpp"

namespace stageline::stash_passes_tests {
namespace {

using test::complaint;
using test::contains;
using test::lanes;
using test::lists;
using test::straight_text;

Program recomputed(const std::string& text, const std::vector<bool>& stages) {
  return add_recompute(parse_program(text), stages);
}

TEST_CASE("R comes right before the first op that reads the stash, whatever that is") {
  CHECK(lists(recomputed(straight_text(2, 2,
                                       "gpu0: 0F0 0F1 0I0 0W0 0I1 0W1\n"
                                       "gpu1: 1F0 1B0 1F1 1I1 1W1\n"),
                         {true, true})) ==
        "gpu0: 0F0 0F1 0R0 0I0 0W0 0R1 0I1 0W1\n"
        "gpu1: 1F0 1R0 1B0 1F1 1R1 1I1 1W1\n");
  // A first stage without I, and a W that does not wait for its I.
  CHECK(lists(recomputed(straight_text(1, 1, "gpu0: 0F0 0W0\n"), {true})) == "gpu0: 0F0 0R0 0W0\n");
  CHECK(lists(recomputed(
            straight_text(2, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1W0 1I0\n", "independent_w: 1\n"),
            {false, true})) == "gpu0: 0F0 0B0\ngpu1: 1F0 1R0 1W0 1I0\n");
}

TEST_CASE("only the stages that are marked are recomputed, and an R that is there stays") {
  const std::string text = straight_text(2, 2,
                                         "gpu0: 0F0 0R0 0F1 0B0 0B1\n"
                                         "gpu1: 1F0 1B0 1F1 1B1\n");
  CHECK(lists(recomputed(text, {true, false})) ==
        "gpu0: 0F0 0R0 0F1 0B0 0R1 0B1\ngpu1: 1F0 1B0 1F1 1B1\n");
  const Program once = recomputed(text, {true, true});
  CHECK(add_recompute(once, {true, true}) == once);
}

TEST_CASE("R comes before an overlapped pair, not between its ops") {
  const Program program = recomputed(
      straight_text(1, 3, "gpu0: 0F0 (0F1;0B0)OVERLAP_F_B (0F2;0B1)OVERLAP_F_B 0B2\n"), {true});
  CHECK(contains(print(program),
                 "gpu0: 0F0 0R0 (0F1;0B0)OVERLAP_F_B 0R1 (0F2;0B1)OVERLAP_F_B 0R2 0B2\n"));
  validate(program);
}

// I of stage 1 in two parts, its W on a third device.
const std::string three_readers =
    "stageline-program 1\nschedule: split\nmicrobatches: 2\n"
    "stage 0: a\nstage 1: F=b I=a+b share=0.5+0.5 W=c\nindependent_w: 1\n"
    "a: 0F0 0F1 1I0 0B0 1I1 0B1\nb: 1F0 1I0.1 1F1 1I1.1\nc: 1W0 1W1\n";

TEST_CASE("with split roles, each device that reads the stash rebuilds it, and copies it back") {
  const Program again = recomputed(three_readers, {false, true});
  CHECK(lists(again) ==
        "a: 0F0 0F1 1R0 1I0 0B0 1R1 1I1 0B1\n"
        "b: 1F0 1R0.1 1I0.1 1F1 1R1.1 1I1.1\n"
        "c: 1R0.2 1W0 1R1.2 1W1\n");
  validate(again);
  CHECK(parse_program(print(again)) == again);
  CHECK(add_recompute(again, {false, true}) == again);
  const Program copied = add_offload(parse_program(three_readers), {false, true}, 1);
  CHECK(lists(copied) ==
        "a: 0F0 1PREFETCH0 0F1 1I0 1PREFETCH1 0B0 1I1 0B1\n"
        "b: 1F0 1OFFLOAD0 1PREFETCH0.1 1I0.1 1F1 1OFFLOAD1 1PREFETCH1.1 1I1.1\n"
        "c: 1PREFETCH0.2 1PREFETCH1.2 1W0 1W1\n");
  validate(copied);
  // A message for the other readers, or none where the host has it.
  CHECK(contains(lists(add_transfers(add_updates(again))), "1F0 1SEND_STASH0 1SEND_STASH0.1 "));
  CHECK(contains(lists(add_transfers(add_updates(again))), "c: 1RECV_STASH0.1 1R0.2 "));
  CHECK_FALSE(contains(lists(add_transfers(add_updates(copied))), "STASH"));
}

TEST_CASE("what is rebuilt is copied out and back as the stage's input, before R") {
  const Program both = add_offload(
      recomputed(straight_text(1, 4, "gpu0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n"), {true}), {true},
      1);
  CHECK(
      lists(both) ==
      "gpu0: 0F0 0OFFLOAD0 0F1 0OFFLOAD1 0F2 0OFFLOAD2 0PREFETCH0 0F3 0OFFLOAD3 0R0 0PREFETCH1 0B0 "
      "0R1 0PREFETCH2 0B1 0R2 0PREFETCH3 0B2 0R3 0B3\n");
  validate(both);
}

TEST_CASE("split roles are rebuilt for all micro-batches, and every copy comes back") {
  const auto refused = [](const std::string& lists) {
    return complaint<ProgramError>([&] {
      validate(
          parse_program("stageline-program 1\nmicrobatches: 2\nweights: latest\n"
                        "stage 0: F=a I=b W=b\n" +
                        lists));
    });
  };
  CHECK(refused("a: 0F0 0F1\nb: 0R0 0B0 0R1 0B1\n") == "");
  CHECK(contains(refused("a: 0F0 0F1\nb: 0R0 0B0 0B1\n"),
                 "no device does 0R1; where the roles of a stage are split, each device that reads "
                 "its stash recomputes all micro-batches or none"));
  CHECK(contains(refused("a: 0F0 0OFFLOAD0 0F1\nb: 0R0 0B0 0R1 0B1\n"),
                 "no device does 0PREFETCH0; what an OFFLOAD takes away must come back"));
}

TEST_CASE("of micro-batches that are not rebuilt, the stash is copied") {
  Costs costs = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
  costs.stage[0].stash_input_grad = Bytes{3};
  costs.stage[0].stash_weight_grad = Bytes{2};
  costs.stage[0].boundary = Bytes{1};
  costs.network.to_host[0].bandwidth = Bandwidth{1'000'000'000'000};
  const test::Simulated some = test::simulated(
      parse_program(straight_text(
          1, 2, "gpu0: 0F0 0OFFLOAD0 0F1 0OFFLOAD1 0PREFETCH0 0R0 0B0 0PREFETCH1 0B1\n")),
      costs);
  CHECK(contains(lanes(some.timeline), "0OFFLOAD0 1-2, 0OFFLOAD1 2-7"));
  const DeviceMemory host = memory_of(some.program, costs, some.timeline, Curves::all).host.at(0);
  CHECK(host.peak == Bytes{5});  // the input is back when the stash has come
  CHECK(host.at_end == MemoryUse{});
}

// F 1, I 1, W 1 on the second stage; R as F; gradients arrive 3 later over a link that takes so.
test::Simulated ran(const std::string& header) {
  const Program program = add_recompute(
      parse_program(straight_text(2, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1B0\n", header)), {true, false});
  const Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1}, Time{3});
  return test::simulated(complete(program, costs), costs);
}

TEST_CASE("early, R runs while the gradient is on its way; late, it waits for it") {
  CHECK(contains(lanes(ran("").timeline), "gpu0 compute: 0F0 0-1, 0R0 1-2, 0B0 10-12"));
  CHECK(contains(lanes(ran("recompute: late\n").timeline),
                 "gpu0 compute: 0F0 0-1, 0R0 10-11, 0B0 11-13"));
}

TEST_CASE("late, a gradient that blocks is received before R") {
  for (const char* const messages : {"blocking", "batched"}) {
    const test::Simulated late = ran(std::string("recompute: late\nmessages: ") + messages + "\n");
    CHECK(contains(lists(late.program), "0RECV_B0 0R0 0B0"));
    const test::Simulated early = ran(std::string("messages: ") + messages + "\n");
    CHECK(contains(lists(early.program), "0R0 0RECV_B0 0B0"));
  }
}

TEST_CASE("the start of R and the issue of copies are in the text where they are not the default") {
  const std::string plain = straight_text(1, 1, "gpu0: 0F0 0R0 0B0\n");
  CHECK_FALSE(contains(print(parse_program(plain)), "recompute:"));
  const std::string late =
      straight_text(1, 1, "gpu0: 0F0 0R0 0B0\n", "copies: issued\nrecompute: late\n");
  const Program program = parse_program(late);
  CHECK(program.settings.recompute == RecomputeStart::late);
  CHECK(program.settings.copies == Copies::issued);
  CHECK(contains(print(program), "\ncopies: issued\nrecompute: late\n"));
  CHECK(parse_program(print(program)) == program);
  CHECK(contains(complaint<ProgramError>([] {
                   parse_program(straight_text(1, 1, "gpu0: 0F0 0B0\n", "recompute: soon\n"));
                 }),
                 "\"soon\" is not one of early, late"));
}

TEST_CASE("stashes leave behind F and are issued back some compute ops before their backward") {
  const std::string text = straight_text(1, 4, "gpu0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n");
  const Program one = add_offload(parse_program(text), {true}, 1);
  CHECK(one.settings.copies == Copies::issued);
  CHECK(lists(one) ==
        "gpu0: 0F0 0OFFLOAD0 0F1 0OFFLOAD1 0F2 0OFFLOAD2 0PREFETCH0 0F3 0OFFLOAD3 0PREFETCH1 0B0 "
        "0PREFETCH2 0B1 0PREFETCH3 0B2 0B3\n");
  const Program two = add_offload(parse_program(text), {true}, 2);
  CHECK(lists(two) ==
        "gpu0: 0F0 0OFFLOAD0 0F1 0OFFLOAD1 0PREFETCH0 0F2 0OFFLOAD2 0PREFETCH1 0F3 0OFFLOAD3 "
        "0PREFETCH2 0B0 0PREFETCH3 0B1 0B2 0B3\n");
  // Another op ahead, each would be back before one has run behind its F: they stay.
  CHECK(add_offload(parse_program(text), {true}, 3) == parse_program(text));
  const Program behind =
      add_offload(parse_program(straight_text(1, 2, "gpu0: 0F0 0B0 0F1 0B1\n")), {true}, 1);
  CHECK_FALSE(contains(lists(behind), "OFFLOAD"));
  CHECK(add_offload(two, {true}, 1) == two);
}

TEST_CASE("a copy that is issued starts behind the op before it, and not sooner") {
  Costs costs = uniform_costs(1, 1, Time{2}, Time{1}, Time{1});
  costs.network.to_host[0].bandwidth = Bandwidth{2'000'000'000'000};  // 1 ps for 2 bytes
  costs.network.from_host[0].bandwidth = costs.network.to_host[0].bandwidth;
  const std::string text = straight_text(1, 3, "gpu0: 0F0 0F1 0F2 0B0 0B1 0B2\n");
  const test::Simulated issued =
      test::simulated(add_offload(parse_program(text), {true}, 1), costs);
  CHECK(contains(lanes(issued.timeline), ": 0PREFETCH0 4-5, 0PREFETCH1 6-7"));
  Program free = issued.program;
  free.settings.copies = Copies::free;
  CHECK(contains(lanes(test::simulated(free, costs).timeline), ": 0PREFETCH0 3-4, 0PREFETCH1 5-6"));
}

TEST_CASE("a step that is deferred behind its neighbours keeps its stash until W") {
  Costs costs = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
  costs.stage[0].stash_input_grad = Bytes{10};
  costs.stage[0].stash_weight_grad = Bytes{100};
  costs.stage[0].boundary = Bytes{1};
  const Program program =
      recomputed(straight_text(1, 2, "gpu0: 0F0 0F1 0I0 0I1 0W0 0W1\n"), {true});
  const test::Simulated ran = test::simulated(program, costs);
  CHECK(contains(lists(program), "0F0 0F1 0R0 0I0 0R1 0I1 0W0 0W1"));
  // Both of the second stash and what W reads of the first, when 0R1 and 0I1 run.
  CHECK(memory_of(program, costs, ran.timeline).device[0].at_peak[as_size(MemoryKind::stash)] ==
        Bytes{210});
}

}  // namespace
}  // namespace stageline::stash_passes_tests
