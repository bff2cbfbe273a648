// Do we give the papers' numbers? Synchronous schedules with several stages a device, two
// directions or another warm-up, exact to the picosecond. Letters as in SCHEDULES: p devices, m
// micro-batches, v chunks a device, w waves, F forward and B backward of one stage, c one transfer.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "sim/errors.hpp"
#include "sim/memory.hpp"
#include "sim/metrics.hpp"
#include "tests/make.hpp"
#include "tests/reference.hpp"

namespace stageline {
namespace {

using test::Ran;

// F, I, W: alike, F > B, F < B, B = 2F.
constexpr std::tuple<int, int, int> ratios[] = {{1, 1, 0}, {7, 2, 3}, {3, 8, 5}, {2, 2, 2}};

struct Size {
  int p = 1;
  int m = 1;
  Time F{1};
  Time I{1};
  Time W{1};
  Time c{};

  Time B() const { return I + W; }
  Time FB() const { return F + I + W; }
};

// One stage takes F, I and W.
Ran run(const std::string& schedule, const Size& size, int steps = 1) {
  const int stages = test::stages_for(test::spec(schedule), size.p);
  return test::run_schedule(schedule, size.p,
                            uniform_costs(stages, size.p, size.F, size.I, size.W, size.c), size.m,
                            steps);
}
Time makespan_of(const std::string& schedule, const Size& size) {
  return makespan(run(schedule, size).times);
}
std::vector<int> peaks(const Ran& ran) {
  return memory_of(ran.program, ran.costs, ran.timeline).device_stash_peak;
}
// Copies of a stage's weights that each device holds; they are a byte each here.
std::vector<std::int64_t> weights_held(const Ran& ran) {
  std::vector<std::int64_t> copies;
  const MemoryProfile memory = memory_of(ran.program, ran.costs, ran.timeline);
  for (const DeviceMemory& device : memory.device) {
    copies.push_back(device.at_peak[static_cast<std::size_t>(MemoryKind::weights)].count);
  }
  return copies;
}
void check_idle(const Ran& ran, Time idle) {
  const Metrics metrics = metrics_of(ran.program, ran.graph, ran.times);
  for (const DeviceMetrics& device : metrics.device) CHECK(device.idle == idle);
}

std::string with(const std::string& schedule, const std::string& knob, int value) {
  const char separator = schedule.find(':') == std::string::npos ? ':' : ',';
  return schedule + separator + knob + "=" + std::to_string(value);
}

template <class Check>
void over(int first, int last, int by, Check&& check) {
  for (int p = first; p <= last; p += by) {
    for (const auto& [F, I, W] : ratios) {
      const Size size{p, 1, Time{F}, Time{I}, Time{W}, Time{}};
      CAPTURE(p);
      CAPTURE(size.F.count());
      CAPTURE(size.I.count());
      CAPTURE(size.W.count());
      check(size);
    }
  }
}

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
          CHECK(held[static_cast<std::size_t>(r)] ==
                std::min(size.m * v, 2 * (size.p - r - 1) + (v - 1) * size.p + 1));
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
          CHECK(held[static_cast<std::size_t>(r)] ==
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
        const Ran ran = run(with("looped_bfs", "chunks", v), size);
        // With fewer micro-batches than devices a device waits for the first to come round.
        const int slots = (v - 1) * std::max(size.m, size.p) + size.m + size.p - 1;
        CHECK(makespan(ran.times) == slots * size.FB());
        CHECK(peaks(ran) == std::vector<int>(static_cast<std::size_t>(size.p), size.m * v));
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
        CHECK(held[static_cast<std::size_t>(r)] == std::min(size.m, 2 * (size.p - r) - 1));
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
              const auto at = static_cast<std::size_t>(i);
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

// ---- GEMS ---------------------------------------------------------------------------------------

TEST_CASE("GEMS: a micro-batch follows the backward of the one before; one stash, weights twice") {
  over(1, 8, 1, [](Size size) {
    for (size.m = 1; size.m <= 9; ++size.m) {
      CAPTURE(size.m);
      const Ran ran = run("gems", size);
      const Time behind = std::max(size.p * size.B() + size.F, size.B() + size.p * size.F);
      CHECK(makespan(ran.times) == size.p * size.F + (size.m - 1) * behind + size.p * size.B());
      CHECK(peaks(ran) == std::vector<int>(static_cast<std::size_t>(size.p), 1));
      const std::vector<std::int64_t> copies = weights_held(ran);
      for (int r = 0; r < size.p; ++r) {
        CHECK(copies[static_cast<std::size_t>(r)] == (2 * r == size.p - 1 ? 1 : 2));
      }
    }
  });
}

TEST_CASE("GEMS: with B = 2F one more micro-batch adds a bubble of (p-1)/(p+1/2)") {
  for (int p = 1; p <= 8; ++p) {
    const Size some{p, 10, Time{5}, Time{5}, Time{5}, Time{}};
    const Size more{p, 11, Time{5}, Time{5}, Time{5}, Time{}};
    const Time one = makespan_of("gems", more) - makespan_of("gems", some);
    // bubble = 1 - (F+B)/one
    CHECK((one - some.FB()) * (2 * p + 1) == one * (2 * (p - 1)));
  }
}

// ---- Chimera ------------------------------------------------------------------------------------

TEST_CASE("Chimera, p = m = 4, B = 2F, takes 16 slots") {
  CHECK(makespan_of("chimera", {4, 4, Time{1}, Time{1}, Time{1}, Time{}}) == Time{16});
}

TEST_CASE("Chimera with m = p is idle for (p-2)·max(F, B); concatenated, (p-2)|B-F| a unit more") {
  over(2, 8, 2, [](Size size) {
    for (int units = 1; units <= 4; ++units) {
      size.m = units * size.p;
      CAPTURE(units);
      const Ran ran = run("chimera", size);
      const Time gap = size.B() > size.F ? size.B() - size.F : size.F - size.B();
      const Time idle = (size.p - 2) * (std::max(size.F, size.B()) + (units - 1) * gap);
      CHECK(makespan(ran.times) == size.m * size.FB() + idle);
      const std::vector<int> held = peaks(ran);
      CHECK(*std::min_element(held.begin(), held.end()) == size.p / 2 + 1);
      CHECK(*std::max_element(held.begin(), held.end()) == size.p);
      for (int r = 0; r < size.p; ++r) {
        CHECK(held[static_cast<std::size_t>(r)] == size.p / 2 + 1 + std::min(r, size.p - 1 - r));
      }
      CHECK(weights_held(ran) == std::vector<std::int64_t>(static_cast<std::size_t>(size.p), 2));
    }
  });
}

TEST_CASE("Chimera's bubble is (p-2)/(2m+p-2) for B = F and (p-2)/(1.5m+p-2) for B = 2F") {
  for (int p = 2; p <= 8; p += 2) {
    for (const auto& [backward, twice] : {std::pair(1, 4), std::pair(2, 3)}) {
      const Size size{p, p, Time{6}, Time{6 * backward}, Time{0}, Time{}};
      const Time all = makespan_of("chimera", size);
      const Time idle = all - size.m * size.FB();
      CHECK(idle * (twice * size.m + 2 * (p - 2)) == all * (2 * (p - 2)));
    }
  }
}

TEST_CASE("Chimera with doubled forwards, B = 2F: no bubble between units, twice the stashes") {
  for (int p = 2; p <= 8; p += 2) {
    Size size{p, 2 * p, Time{3}, Time{3}, Time{3}, Time{}};
    const Time idle = makespan_of("chimera:concat=doubling", size) - size.m * size.FB();
    for (int units = 1; units <= 4; ++units) {
      size.m = units * 2 * p;
      CAPTURE(p);
      CAPTURE(units);
      const Ran ran = run("chimera:concat=doubling", size);
      check_idle(ran, idle);
      const std::vector<int> held = peaks(ran);
      CHECK(*std::max_element(held.begin(), held.end()) == 2 * p);
      if (p > 2) CHECK(makespan(ran.times) < makespan_of("chimera", size));
    }
  }
}

// ---- Hanayo -------------------------------------------------------------------------------------

TEST_CASE("Hanayo with m = p is idle for 2(p-1)·max(F, B) of a chunk, and holds 2wp-(p-1-r)") {
  over(1, 8, 1, [](Size size) {
    for (const int w : {1, 2, 3}) {
      size.m = size.p;
      CAPTURE(w);
      const Ran ran = run(with("hanayo", "waves", w), size);
      check_idle(ran, 2 * (size.p - 1) * std::max(size.F, size.B()));
      const std::vector<int> held = peaks(ran);
      for (int r = 0; r < size.p; ++r) {
        CHECK(held[static_cast<std::size_t>(r)] == 2 * w * size.p - (size.p - 1 - r));
      }
    }
  });
}

TEST_CASE("Hanayo with F = B: rounds of p without a gap, and the last round alone") {
  for (int p = 1; p <= 8; ++p) {
    for (const int w : {1, 2, 3}) {
      for (int m = 1; m <= 3 * p + 1; ++m) {
        const Size size{p, m, Time{5}, Time{2}, Time{3}, Time{}};
        CAPTURE(p);
        CAPTURE(w);
        CAPTURE(m);
        const Ran ran = run(with("hanayo", "waves", w), size);
        const int before = (m - 1) / p * p;
        CHECK(makespan(ran.times) == (2 * w * before + 2 * w * p + m - before - 1) * size.FB());
        const std::vector<int> held = peaks(ran);
        CHECK(*std::max_element(held.begin(), held.end()) == 2 * w * std::min(m, p));
        // bubble (p-1)/(2wm+p-1)
        if (m % p > 0) continue;
        const Time all = makespan(ran.times);
        CHECK((all - 2 * w * m * size.FB()) * (2 * w * m + p - 1) == all * (p - 1));
      }
    }
  }
}

// ---- all ----------------------------------------------------------------------------------------

const char* const static_orders[] = {"interleaved_1f1b",
                                     "interleaved_1f1b:chunks=3",
                                     "looped_bfs",
                                     "looped_bfs:chunks=3",
                                     "eager_1f1b",
                                     "dapple",
                                     "gems",
                                     "dapple:policy=B",
                                     "chimera",
                                     "chimera:concat=doubling",
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
        const auto step = static_cast<std::size_t>(list[i].microbatch) / 8;
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
        "4 devices; take 4 or 8");
  CHECK(refusal("interleaved_1f1b", 4, 3) ==
        "interleaved_1f1b: 3 micro-batches in groups of 4 leave a last group of 3, fewer than the "
        "4 devices; take 4");
  CHECK(refusal("interleaved_1f1b:group=6", 4, 8) ==
        "interleaved_1f1b: 8 micro-batches in groups of 6 leave a last group of 2, fewer than the "
        "4 devices; take 6 or 10");
  CHECK(refusal("interleaved_1f1b:group=3", 4, 8) ==
        "interleaved_1f1b: group=3 is smaller than the number of devices, 4, so that a group's "
        "first micro-batch would not be back when its next chunk's turn comes; take group=4");
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
  CHECK(refusal("chimera", 1, 8) ==
        "chimera: two directions through 1 device would meet on the same stage; it needs an even "
        "number; take 2");
}

}  // namespace
}  // namespace stageline
