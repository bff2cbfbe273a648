// Do the synchronous schedules with a static order end their steps as they should, does an
// independent simulation agree, and do they say what does not suit?
#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/schedules/reference.hpp"
#include "tests/schedules/synchronous.hpp"

namespace stageline::static_orders_tests {
namespace {

using test::Ran;
using test::equal_stages::makespan_of;
using test::equal_stages::run;
using test::equal_stages::Size;

const char* const static_orders[] = {"interleaved_1f1b",
                                     "interleaved_1f1b:chunks=3",
                                     "interleaved_1f1b:group=2",
                                     "interleaved_1f1b:chunks=3,group=3",
                                     "looped_bfs",
                                     "looped_bfs:chunks=3",
                                     "looped_bfs:reverse=yes",
                                     "1f1b_v",
                                     "eager_1f1b",
                                     "dapple",
                                     "gems",
                                     "dapple:policy=B",
                                     "chimera",
                                     "chimera:concat=doubling",
                                     "chimera:pipelines=4",
                                     "1f1b:stashes=paired",
                                     "hanayo",
                                     "hanayo:waves=2"};

TEST_CASE("k steps take k times as long, and a step ends with the updates of all stages") {
  for (const char* const schedule : static_orders) {
    CAPTURE(schedule);
    const Size size{4, 8, Time{3}, Time{4}, Time{5}, Time{}};
    const Ran three = run(schedule, size, 3);
    CHECK(makespan(three.times) == 3 * makespan_of(schedule, size));
    for (const auto& list : three.program.ops) {
      std::vector<int> last;  // by step, the position of its last B
      for (std::size_t i = 0; i < list.size(); ++i) {
        const auto step = as_size(list[i].microbatch) / 8;
        if (list[i].kind != OpKind::backward) continue;
        last.resize(step + 1);
        last[step] = static_cast<int>(i);
      }
      REQUIRE(last.size() == 3);
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].kind != OpKind::update) continue;
        CHECK(static_cast<int>(i) > last[list[i].microbatch]);
      }
    }
  }
}

// An odd number of micro-batches leaves the next step of two directions to begin the other way.
TEST_CASE("steps of an odd number of micro-batches are the same step, mirrored") {
  for (const char* const schedule : {"gems", "chimera", "chimera:concat=doubling"}) {
    for (const int m : {1, 3, 5, 7, 9}) {
      CAPTURE(schedule);
      CAPTURE(m);
      const Size size{4, m, Time{3}, Time{4}, Time{5}, Time{}};
      const Ran two = run(schedule, size, 2);
      for (std::size_t d = 0; d < 4; ++d) {
        std::vector<Op> first;
        std::vector<Op> second;
        for (const Op op : two.program.ops[d]) {
          if (counts_microbatches(op.kind) && op.microbatch < static_cast<std::uint32_t>(m)) {
            first.push_back(op);
          }
        }
        for (Op op : two.program.ops[3 - d]) {
          if (counts_microbatches(op.kind) && op.microbatch >= static_cast<std::uint32_t>(m)) {
            op.microbatch -= static_cast<std::uint32_t>(m);
            second.push_back(op);
          }
        }
        CHECK(first == second);
      }
    }
  }
}

TEST_CASE("with unequal stages and messages the independent simulation says the same") {
  std::mt19937 random(7);
  int ran_at = 0;
  for (const char* const schedule : static_orders) {
    for (const int p : {4, 7, 8}) {
      for (const int m : {8, 14, 16}) {
        const ScheduleSpec spec = test::spec(schedule);
        CAPTURE(schedule);
        CAPTURE(p);
        CAPTURE(m);
        try {
          const int stages = test::stages_for(spec, p);
          const Costs costs = test::random_costs(random, stages, p, random() % 2 == 0);
          const Ran ran = test::run_program(
              spec.scheduler->schedule(test::problem_for(spec, p, costs, m, 2)), costs);
          const TaskTimes times = sweep(ran.graph);  // the reference shares no links
          const std::map<Op, test::When> when = test::reference(ran.program, costs);
          int wrong = 0;
          for (std::uint32_t task = 0; task < ran.graph.tasks(); ++task) {
            const auto found = when.find(ran.graph.op[task]);
            if (found == when.end() || found->second.end != end_of(ran.graph, times, task)) ++wrong;
          }
          CHECK(wrong == 0);
          ++ran_at;
        } catch (const UsageError&) {
          continue;  // p odd, or m and p do not go together
        }
      }
    }
  }
  CHECK(ran_at >= 80);
}

TEST_CASE("what does not suit is refused, with the nearest that does") {
  const auto refusal = [](const std::string& schedule, int p, int m) -> std::string {
    try {
      run(schedule, {p, m, Time{1}, Time{1}, Time{1}, Time{}});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal("interleaved_1f1b", 4, 6) ==
        "interleaved_1f1b: 6 micro-batches in groups of 4 leave a last group of 2, fewer than the "
        "4 devices; take 4 or 8, or group=6, as PyTorch's ScheduleInterleaved1F1B");
  CHECK(refusal("interleaved_1f1b", 4, 3) ==
        "interleaved_1f1b: 3 micro-batches in groups of 4 leave a last group of 3, fewer than the "
        "4 devices; take 4");
  CHECK(refusal("interleaved_1f1b:group=6", 4, 8) ==
        "interleaved_1f1b: 8 micro-batches in groups of 6 leave a last group of 2, fewer than the "
        "4 devices; take 6 or 10, or group=4, as PyTorch's ScheduleInterleaved1F1B");
  CHECK(refusal("interleaved_1f1b:group=6", 4, 6).empty());
  CHECK(refusal("interleaved_1f1b:group=5", 4, 10).empty());
  CHECK(
      refusal("interleaved_1f1b:group=2", 5, 10) ==
      "interleaved_1f1b: group=2 is smaller than half the number of devices, 5, so that one group "
      "in flight would not keep them busy; take group=3, or interleaved_zb:group=2, which then "
      "has several in flight");
  CHECK(
      refusal("interleaved_1f1b:group=3,overlap=experts", 4, 8) ==
      "interleaved_1f1b: overlap=experts runs forwards beside backwards in Megatron-Core's order, "
      "whose groups have at least as many micro-batches as devices, 4 (group is 3); take group=4");
  for (const int m : {1, 2, 3, 7, 8}) CHECK(refusal("interleaved_1f1b:group=3", 5, m).empty());
  CHECK(refusal("interleaved_1f1b:group=4", 4, 8).empty());
  CHECK(spelled(test::spec("interleaved_1f1b:group=auto")) == "interleaved_1f1b");
  CHECK_THROWS_AS(test::spec("interleaved_1f1b:group=automatic"), UsageError);
  CHECK(refusal("interleaved_1f1b:chunks=20000", 4, 8) ==
        "interleaved_1f1b: chunks=20000 on 4 devices makes 80000 stages, but at most 65535 can be "
        "told apart; take chunks=16383");
  CHECK(refusal("hanayo:waves=2147483647", 4, 8).find("take waves=8191") != std::string::npos);
  CHECK(refusal("looped_bfs:chunks=2147483647", 1, 8).find("take chunks=65535") !=
        std::string::npos);
  CHECK(refusal("chimera", 5, 8) ==
        "chimera: two directions through 5 devices would meet on the same stage; it needs an even "
        "number; take 4 or 6");
  CHECK(refusal("chimera:pipelines=3", 12, 8) ==
        "chimera: pipelines is an even divisor of the 12 devices, so that none meets another on a "
        "stage: one of 2, 4, 6, 12 (it is \"3\")");
  CHECK(refusal("chimera:pipelines=4,concat=doubling", 8, 8) ==
        "chimera: concat=doubling is an order of two pipelines, and there are 4; leave out one of "
        "the two");
  CHECK(refusal("1f1b:stashes=paired,vocabulary=one_barrier", 8, 8) ==
        "1f1b: stashes=paired moves stashes of plain 1F1B, and vocabulary=one_barrier holds others "
        "beside them; leave out one of the two");
  CHECK(refusal("chimera", 1, 8) ==
        "chimera: two directions through 1 device would meet on the same stage; it needs an even "
        "number; take 2");
}

}  // namespace
}  // namespace stageline::static_orders_tests
