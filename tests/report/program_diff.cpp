// Does a diff say where two programs part, and how far?
#include "sim/analysis/program_diff.hpp"

#include <doctest/doctest.h>

#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "tests/text.hpp"
#include "tests/traces/support.hpp"
#include "tools/report/text/diff.hpp"

namespace stageline::program_diff_tests {
namespace {

using test::straight_text;

const std::string lists =
    "gpu0: 0F0 0F1 0B0 0F2 0B1 0B2\n"
    "gpu1: 1F0 1B0 1F1 1B1 1F2 1B2\n";

Program program(const std::string& text) { return parse_program(text); }
Program two(const std::string& of = lists, const std::string& header = "") {
  return program(straight_text(2, 3, of, header));
}

ProgramDiff diff(const Program& a, const Program& b) { return diff_of({"a", a, {}}, {"b", b, {}}); }

TEST_CASE("equal programs are equal, whatever they are called") {
  Program other = two();
  other.schedule = "another";
  const ProgramDiff found = diff(two(), other);
  CHECK(found.equal());
  CHECK(found.ops == 12);
  CHECK(!found.first);
  CHECK(contains(report::diff_text({"a", "b", found, "", {}, {}, {}, {}}),
                 "equal: 12 ops on 2 devices"));
}

TEST_CASE(
    "the first op that differs is named with its neighbours, and the fewest to move counted") {
  const Program other = two("gpu0: 0F0 0F1 0F2 0B0 0B1 0B2\ngpu1: 1F0 1F1 1B0 1B1 1F2 1B2\n");
  const ProgramDiff found = diff(two(), other);
  CHECK(!found.equal());
  REQUIRE(found.first.has_value());
  // At op 3 on gpu0, at op 2 on gpu1.
  CHECK(found.device[found.first->device].name == "gpu1");
  CHECK(found.first->position == 1);
  CHECK(print(*found.first->first) == "1B0");
  CHECK(print(*found.first->second) == "1F1");
  CHECK(found.first->first_context == "1F0 [1B0] 1F1 1B1 1F2 1B2");
  CHECK(found.first->second_context == "1F0 [1F1] 1B0 1B1 1F2 1B2");
  CHECK(found.reordered == 2);
  CHECK(found.differing() == 2);
  CHECK(found.device[0].differ == 1);
  CHECK(found.device[0].position == 2U);
  CHECK(found.elsewhere == 0);
  const std::string text = report::diff_text({"a", "b", found, "", {}, {}, {}, {}});
  CHECK(contains(text, "gpu1 differs first, at op 2 of its list: 1B0 | 1F1\n"));
  CHECK(contains(text, "2 of 12 ops differ: 2 in another order, 0 on another device"));
}

TEST_CASE("a list that ends differs where it ends") {
  const Program shorter =
      program(straight_text(2, 2, "gpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1B0 1F1 1B1\n"));
  const ProgramDiff found = diff(two(), shorter);
  CHECK(found.settings == std::vector<std::string>{"microbatches: 3 | 2"});
  CHECK(found.only_first.size() == 4);
  CHECK(found.only_second.empty());
  CHECK(found.device[1].position == 4U);
  CHECK(found.first->position == 3);
  CHECK(contains(report::diff_text({"a", "b", found, "", {}, {}, {}, {}}),
                 "only in the first (4): 0F2 1F2 0B2 1B2"));
  Program one = two();
  one.ops[1].pop_back();
  const ProgramDiff ended = diff(two(), one);
  CHECK(ended.first->position == 5);
  CHECK(!ended.first->second);
  CHECK(ended.first->second_context == "… 1B0 1F1 1B1 1F2 [end]");
}

TEST_CASE("settings and places that differ are named") {
  Program other = two(lists, "steps: 1\nweights: stash\nindependent_w: 1\nclock: lockstep\n");
  CHECK(diff(two(), other).settings == std::vector<std::string>{"weights: flush | stash",
                                                                "independent_w: none | 1",
                                                                "clock: free | lockstep"});
  // Stages swapped between the devices.
  const Program swapped = program(
      "stageline-program 1\nmicrobatches: 3\nstage 0: gpu1\nstage 1: gpu0\n"
      "gpu1: 0F0 0F1 0B0 0F2 0B1 0B2\ngpu0: 1F0 1B0 1F1 1B1 1F2 1B2\n");
  const ProgramDiff found = diff(two(), swapped);
  CHECK(found.settings == std::vector<std::string>{"stage 0: gpu0 | gpu1", "stage 1: gpu1 | gpu0"});
  CHECK(found.elsewhere == 12);
  CHECK(found.only_first.empty());
}

TEST_CASE("devices of other names are matched by their place") {
  const Program ranks = program(
      "stageline-program 1\nmicrobatches: 3\nstage 0: rank0\nstage 1: rank1\n"
      "rank0: 0F0 0F1 0B0 0F2 0B1 0B2\nrank1: 1F0 1B0 1F1 1B1 1F2 1B2\n");
  const ProgramDiff found = diff(two(), ranks);
  CHECK(found.equal());
  CHECK(found.device[0].name == "gpu0 / rank0");
}

TEST_CASE("what passes add is compared only where both have it") {
  const Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1}, Time{1});
  const Program complete_one = complete(two(), costs);
  const ProgramDiff found = diff(two(), complete_one);
  CHECK(found.equal());
  CHECK(found.notes ==
        std::vector<std::string>{"only the second has messages; they are not compared",
                                 "only the second has updates; they are not compared"});
  Program moved = complete_one;
  std::swap(moved.ops[0][1], moved.ops[0][2]);  // 0SEND_F0 and 0F1
  CHECK(!diff(moved, complete_one).equal());
  CHECK(diff(two(), moved).equal());
}

TEST_CASE("overlapped pairs differ from ops one after the other") {
  const Program paired =
      two("gpu0: 0F0 0F1 (0F2;0B0)OVERLAP_F_B 0B1 0B2\n"
          "gpu1: 1F0 1B0 1F1 1B1 1F2 1B2\n");
  const Program plain =
      two("gpu0: 0F0 0F1 0F2 0B0 0B1 0B2\n"
          "gpu1: 1F0 1B0 1F1 1B1 1F2 1B2\n");
  const ProgramDiff found = diff(plain, paired);
  CHECK(found.repaired == 2);
  CHECK(found.reordered == 0);
  CHECK(found.first->position == 2);
  CHECK(
      contains(report::diff_text({"a", "b", found, "", {}, {}, {}, {}}), "2 overlapped otherwise"));
}

TEST_CASE("every schedule equals itself, and the order its timeline shows") {
  std::size_t tried = 0;
  for (const ScheduleSpec& spec : test::all_specs(3)) {
    test::Ran ran;
    try {
      const Costs costs =
          uniform_costs(test::stages_for(spec, 3), 3, Time{4}, Time{3}, Time{2}, Time{1});
      ran =
          test::run_program(spec.scheduler->schedule(test::problem_for(spec, 3, costs, 4)), costs);
    } catch (const UsageError&) {
      continue;
    }
    CHECK_MESSAGE(diff(ran.program, ran.program).equal(), spelled(spec));
    const ProgramDiff seen = diff_of({"a", ran.program, {}}, {"b", std::nullopt, ran.timeline});
    CHECK_MESSAGE(seen.equal(), spelled(spec));
    ++tried;
  }
  CHECK(tried > 10);
}

TEST_CASE("of two timelines the order counts and not the times") {
  const auto timeline = [](Time forward) {
    return test::run_schedule("1f1b", 2, uniform_costs(2, 2, forward, Time{2}, Time{2}), 4)
        .timeline;
  };
  CHECK(diff_of({"a", std::nullopt, timeline(Time{1})}, {"b", std::nullopt, timeline(Time{9})})
            .equal());
  Timeline other = timeline(Time{1});
  std::swap(other.lanes[0][1].op, other.lanes[0][2].op);
  const ProgramDiff found =
      diff_of({"a", std::nullopt, timeline(Time{1})}, {"b", std::nullopt, other});
  CHECK(found.first->position == 1);
  CHECK(found.reordered == 1);
}

}  // namespace
}  // namespace stageline::program_diff_tests
