// Do we give the papers' numbers? Interleaved 1F1B, looped breadth-first, eager 1F1B and DAPPLE,
// exact to the picosecond.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/schedules/synchronous.hpp"

namespace stageline::closed_forms_synchronous_tests {
namespace {

using test::Ran;
using test::equal_stages::check_idle;
using test::equal_stages::makespan_of;
using test::equal_stages::over;
using test::equal_stages::peaks;
using test::equal_stages::run;
using test::equal_stages::Size;
using test::equal_stages::with;

// ---- interleaved 1F1B ---------------------------------------------------------------------------

TEST_CASE("interleaved 1F1B is idle for (p-1)(F+B) of a chunk, and holds its warm-up and one") {
  over(1, 8, 1, [](Size size) {
    for (const int v : {1, 2, 3, 4}) {
      for (const int groups : {1, 2, 3}) {
        size.m = groups * size.p;
        CAPTURE(v);
        CAPTURE(size.m);
        const Ran ran = run(with("interleaved_1f1b", "chunks", v), size);
        CHECK(makespan(ran.times) == (size.m * v + size.p - 1) * size.FB());
        check_idle(ran, (size.p - 1) * size.FB());
        const std::vector<int> held = peaks(ran);
        for (int r = 0; r < size.p; ++r) {
          CHECK(nth(held, r) == std::min(size.m * v, 2 * (size.p - r - 1) + (v - 1) * size.p + 1));
        }
      }
    }
  });
}

TEST_CASE("groups of more than p, and a last group of p or more, cost memory and no time") {
  over(1, 5, 1, [](Size size) {
    for (int group = size.p; group <= 2 * size.p + 1; ++group) {
      for (size.m = size.p; size.m <= 3 * size.p + 2; ++size.m) {
        const int last = size.m % group;
        const std::string schedule = with("interleaved_1f1b:chunks=3", "group", group);
        CAPTURE(group);
        CAPTURE(size.m);
        if (last > 0 && last < size.p) {
          CHECK_THROWS_AS(run(schedule, size), UsageError);
          continue;
        }
        const Ran ran = run(schedule, size);
        CHECK(makespan(ran.times) == (3 * size.m + size.p - 1) * size.FB());
        const std::vector<int> held = peaks(ran);
        for (int r = 0; r < size.p; ++r) {
          CHECK(nth(held, r) ==
                std::min(3 * size.m, 2 * (size.p - r - 1) + 2 * std::min(group, size.m) + 1));
        }
      }
    }
  });
}

// ---- looped breadth-first -----------------------------------------------------------------------

TEST_CASE("looped BFS is GPipe by chunk, and holds mv of them") {
  over(1, 8, 1, [](Size size) {
    for (const int v : {1, 2, 3}) {
      for (size.m = 1; size.m <= 10; ++size.m) {
        CAPTURE(v);
        CAPTURE(size.m);
        for (const char* const reverse : {"no", "yes"}) {
          const Ran ran =
              run(with("looped_bfs:reverse=" + std::string(reverse), "chunks", v), size);
          // With fewer micro-batches than devices a device waits for the first to come round.
          const int slots = (v - 1) * std::max(size.m, size.p) + size.m + size.p - 1;
          CHECK(makespan(ran.times) == slots * size.FB());
          CHECK(peaks(ran) == std::vector<int>(as_size(size.p), size.m * v));
        }
      }
    }
  });
}

// ---- eager 1F1B and DAPPLE ----------------------------------------------------------------------

TEST_CASE("eager 1F1B takes as long as 1F1B, and holds at most 2(p-r)-1 stashes") {
  over(1, 8, 1, [](Size size) {
    for (size.m = 1; size.m <= 16; ++size.m) {
      CAPTURE(size.m);
      const Ran ran = run("eager_1f1b", size);
      CHECK(makespan(ran.times) == (size.m + size.p - 1) * size.FB());
      check_idle(ran, (size.p - 1) * size.FB());
      const std::vector<int> held = peaks(ran);
      for (int r = 0; r < size.p; ++r) {
        CHECK(nth(held, r) == std::min(size.m, 2 * (size.p - r) - 1));
      }
    }
  });
}

// 1F1B pays for a round trip every p micro-batches (closed_forms.cpp); here twice as many are under
// way, and only the first and the last are waited for.
TEST_CASE("with transfers eager 1F1B adds 2(p-1)c however many micro-batches") {
  over(2, 6, 1, [](Size size) {
    for (size.m = 1; size.m <= 14; ++size.m) {
      for (int c = 1; Time{c} <= std::min(size.F, size.B()); ++c) {
        size.c = Time{c};
        CAPTURE(size.m);
        CAPTURE(c);
        CHECK(makespan_of("eager_1f1b", size) ==
              (size.m + size.p - 1) * size.FB() + 2 * (size.p - 1) * size.c);
      }
    }
  });
}

TEST_CASE("without a memory limit DAPPLE's policies are 1F1B and eager 1F1B") {
  over(1, 8, 1, [](Size size) {
    for (const int c : {0, 1, 4}) {
      size.c = Time{c};
      for (size.m = 1; size.m <= 12; ++size.m) {
        CAPTURE(size.m);
        for (const auto& [dapple, other] :
             {std::pair("dapple", "1f1b"), std::pair("dapple:policy=B", "eager_1f1b")}) {
          const Ran one = run(dapple, size);
          const Ran two = run(other, size);
          CHECK(one.program.ops == two.program.ops);
          CHECK(one.times.available == two.times.available);
        }
      }
    }
  });
}

// A stash is two bytes, and a device holds weights and gradients of one byte each beside them.
TEST_CASE("DAPPLE does as many forwards ahead as memory holds stashes, K = min(p-i, D)") {
  over(1, 6, 1, [](Size size) {
    for (size.m = 1; size.m <= 9; ++size.m) {
      for (int depth = 1; depth <= size.p + 1; ++depth) {
        for (const int odd : {0, 1}) {  // a byte that is no stash
          for (const bool twice : {false, true}) {
            CAPTURE(size.m);
            CAPTURE(depth);
            CAPTURE(twice);
            const ScheduleSpec spec = test::spec(twice ? "dapple:policy=B" : "dapple");
            const Costs costs = uniform_costs(size.p, size.p, size.F, size.I, size.W);
            Problem problem = test::problem_for(spec, size.p, costs, size.m);
            problem.memory.assign(problem.memory.size(), Bytes{2 + 2 * depth + odd});
            const Ran ran = test::run_program(spec.scheduler->schedule(problem), costs);
            const MemoryProfile memory = memory_of(ran.program, costs, ran.timeline);
            for (int i = 0; i < size.p; ++i) {
              const auto at = as_size(i);
              const int behind = size.p - i;
              CHECK(memory.device_stash_peak[at] ==
                    std::min({twice ? 2 * behind - 1 : behind, depth, size.m}));
              CHECK(memory.device[at].peak <= *problem.memory[at]);
            }
            if (twice || depth > size.p) continue;
            // The first p-D+1 devices each wait for the next one's backward before the forward
            // that it waits for, so that every micro-batch behind the first D goes there and back
            // through them alone.
            const int d = std::min(depth, size.m);
            CHECK(makespan(ran.times) ==
                  ((size.m - d) * (size.p - d + 1) + size.p + d - 1) * size.FB());
          }
        }
      }
    }
  });
}

TEST_CASE("DAPPLE: a device holds no more than the one before, and one when not even that fits") {
  const ScheduleSpec spec = test::spec("dapple");
  const Costs costs = uniform_costs(4, 4, Time{1}, Time{1}, Time{1});
  Problem problem = test::problem_for(spec, 4, costs, 8);
  problem.memory = {std::nullopt, Bytes{6}, std::nullopt, Bytes{2}};
  const Ran ran = test::run_program(spec.scheduler->schedule(problem), costs);
  CHECK(peaks(ran) == std::vector<int>{4, 2, 2, 1});
  // With messages there is room left for one of each kind: 1 and 1 byte on either side of stage 1.
  const Costs slow = uniform_costs(4, 4, Time{1}, Time{1}, Time{1}, Time{1});
  problem.costs = slow;
  CHECK(peaks(test::run_program(spec.scheduler->schedule(problem), slow)) ==
        std::vector<int>{4, 1, 1, 1});
}

}  // namespace
}  // namespace stageline::closed_forms_synchronous_tests
