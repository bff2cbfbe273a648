// Do we give the papers' numbers? Naive model parallelism, GPipe and 1F1B, exact to the picosecond.
// p devices, m micro-batches, F forward, B backward, c one transfer.
#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"

namespace stageline::closed_forms_tests {
namespace {

using test::Ran;

struct Size {
  int p = 1;
  int m = 1;
  Time F{1};
  Time I{1};
  Time W{1};
  Time c{};

  Time B() const { return I + W; }
  Time FB() const { return F + I + W; }
  Costs costs() const { return uniform_costs(p, p, F, I, W, c); }
};

Ran run(const std::string& schedule, const Size& size) {
  return test::run_schedule(schedule, size.p, size.costs(), size.m);
}
Time makespan_of(const std::string& schedule, const Size& size) {
  return makespan(run(schedule, size).times);
}

std::string text(const Size& size) {
  return "p " + std::to_string(size.p) + ", m " + std::to_string(size.m) + ", F " +
         std::to_string(size.F.count()) + ", I " + std::to_string(size.I.count()) + ", W " +
         std::to_string(size.W.count()) + ", c " + std::to_string(size.c.count());
}

// p to 8, m to 16, three ratios of F, I and W.
template <class Check>
void over_sizes(Check&& check) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 16; ++m) {
      for (const auto& [F, I, W] :
           {std::tuple(1, 1, 1), std::tuple(7, 2, 3), std::tuple(3, 8, 5)}) {
        const Size size{p, m, Time{F}, Time{I}, Time{W}, Time{}};
        CAPTURE(text(size));
        check(size);
      }
    }
  }
}

TEST_CASE("naive model parallelism takes m·p·(F+B) and holds one stash") {
  over_sizes([](const Size& size) {
    const Ran ran = run("naive", size);
    CHECK(makespan(ran.times) == size.m * size.p * size.FB());
    const MemoryProfile memory = memory_of(ran.program, ran.costs, ran.timeline);
    CHECK(memory.device_stash_peak == std::vector<int>(as_size(size.p), 1));
  });
}

TEST_CASE("GPipe and 1F1B take (m+p-1)(F+B), and every device is idle for (p-1)(F+B)") {
  over_sizes([](const Size& size) {
    for (const char* const schedule : {"gpipe", "gpipe:reverse=yes", "1f1b"}) {
      CAPTURE(schedule);
      const Ran ran = run(schedule, size);
      CHECK(makespan(ran.times) == (size.m + size.p - 1) * size.FB());
      const Metrics metrics = metrics_of(ran.program, ran.graph, ran.times);
      for (const DeviceMetrics& device : metrics.device) {
        CHECK(device.busy == size.m * size.FB());
        CHECK(device.idle == (size.p - 1) * size.FB());
      }
    }
  });
}

TEST_CASE("GPipe holds m stashes on every device, 1F1B at most p-r on device r") {
  over_sizes([](const Size& size) {
    const Ran gpipe = run("gpipe", size);
    const Ran one_f = run("1f1b", size);
    const MemoryProfile all = memory_of(gpipe.program, gpipe.costs, gpipe.timeline);
    const MemoryProfile few = memory_of(one_f.program, one_f.costs, one_f.timeline);
    for (int r = 0; r < size.p; ++r) {
      const auto at = as_size(r);
      CHECK(all.device_stash_peak[at] == size.m);
      CHECK(few.device_stash_peak[at] == std::min(size.m, size.p - r));
      CHECK(few.stage[at].stash_peak == std::min(size.m, size.p - r));
      // A stash is two bytes here.
      CHECK(nth(all.device[at].at_peak, MemoryKind::stash) == Bytes{2 * size.m});
    }
  });
}

TEST_CASE("a synchronous step has one version of its weights, and k steps take k times as long") {
  over_sizes([](const Size& size) {
    if (size.m > 6) return;
    for (const char* const schedule : {"naive", "gpipe", "1f1b"}) {
      const Ran three = test::run_schedule(schedule, size.p, size.costs(), size.m, 3);
      for (const StageVersions& versions : versions_of(three.program, three.timeline)) {
        CHECK(versions.held_peak == 1);
        CHECK(versions.staleness_max == 0);
        CHECK(versions.consistent);
      }
      // Behind a flush every stage's first forward waits for the whole of the step before.
      CHECK(makespan(three.times) == 3 * makespan_of(schedule, size));
    }
  });
}

TEST_CASE("recomputing everything costs m more forwards, and leaves one stash and m-1 inputs") {
  over_sizes([](const Size& size) {
    Costs costs = size.costs();
    for (StageCosts& stage : costs.stage) {
      stage.boundary = Bytes{10};
      stage.stash_input_grad = Bytes{100};
      stage.stash_weight_grad = Bytes{1000};
      stage.weights = stage.gradients = Bytes{};
    }
    for (const char* const schedule : {"gpipe:recompute=always", "1f1b:recompute=always"}) {
      CAPTURE(schedule);
      const Ran ran = test::run_schedule(schedule, size.p, costs, size.m);
      CHECK(makespan(ran.times) == (size.m + size.p - 1) * size.FB() + size.m * size.F);
      const MemoryProfile memory = memory_of(ran.program, costs, ran.timeline);
      for (int r = 0; r < size.p; ++r) {
        const auto at = as_size(r);
        const int inputs = schedule[0] == 'g' ? size.m : std::min(size.m, size.p - r);
        CHECK(memory.device_stash_peak[at] == 1);
        CHECK(memory.device[at].peak == Bytes{10 * (inputs - 1) + 1100});
      }
    }
  });
}

TEST_CASE("torchgpipe's except_last spares one recomputation on the last device") {
  over_sizes([](const Size& size) {
    const Time plain = (size.m + size.p - 1) * size.FB();
    for (const char* const reverse : {"no", "yes"}) {
      const std::string schedule = std::string("gpipe:recompute=except_last,reverse=") + reverse;
      CHECK(makespan_of(schedule, size) == plain + (size.m - 1) * size.F);
    }
  });
}

TEST_CASE("with one partition, two chunks and B = 2F, except_last has 6/7 of the plain speed") {
  const Size size{1, 2, Time{5}, Time{5}, Time{5}, Time{}};
  const Time plain = makespan_of("gpipe", size);
  CHECK(7 * plain == 6 * makespan_of("gpipe:recompute=except_last", size));
  CHECK(8 * plain == 6 * makespan_of("gpipe:recompute=always", size));
}

TEST_CASE("in reverse, except_last never holds more than one stash; in order it holds two") {
  const Size size{3, 4, Time{1}, Time{1}, Time{1}, Time{}};
  const auto peaks = [&](const std::string& schedule) {
    const Ran ran = run(schedule, size);
    return memory_of(ran.program, ran.costs, ran.timeline).device_stash_peak;
  };
  CHECK(peaks("gpipe:recompute=except_last,reverse=yes") == std::vector<int>{1, 1, 1});
  CHECK(peaks("gpipe:recompute=except_last,reverse=no") == std::vector<int>{2, 2, 2});
}

// p from 2, m to 12, and a transfer c, each device pair with a wire of its own.
template <class Check>
void over_transfers(Check&& check) {
  for (int p = 2; p <= 6; ++p) {
    for (int m = 1; m <= 14; ++m) {
      for (int c = 1; c <= 12; ++c) {
        for (const auto& [F, I, W] :
             {std::tuple(2, 1, 1), std::tuple(4, 3, 5), std::tuple(7, 2, 3)}) {
          const Size size{p, m, Time{F}, Time{I}, Time{W}, Time{c}};
          CAPTURE(text(size));
          check(size);
        }
      }
    }
  }
}

TEST_CASE("with transfers the naive schedule adds 2(p-1)c to every micro-batch") {
  over_transfers([](const Size& size) {
    CHECK(makespan_of("naive", size) == size.m * (size.p * size.FB() + 2 * (size.p - 1) * size.c));
  });
}

TEST_CASE("with transfers GPipe adds 2(p-1)c, and a wire slower than a stage sets the pace") {
  over_transfers([](const Size& size) {
    const Time down = (size.p - 1) * (size.F + size.c) + (size.m - 1) * std::max(size.F, size.c);
    const Time up = (size.p - 1) * (size.B() + size.c) + (size.m - 1) * std::max(size.B(), size.c);
    CHECK(makespan_of("gpipe", size) == down + size.F + size.B() + up);
    if (size.c > std::min(size.F, size.B())) return;
    CHECK(makespan_of("gpipe", size) ==
          (size.m + size.p - 1) * size.FB() + 2 * (size.p - 1) * size.c);
  });
}

// 1F1B has p micro-batches under way, so a micro-batch's round trip through all p stages, which is
// p(F+B) + 2(p-1)c long, bounds every p micro-batches: (p-1)/p of 2c more for each.
TEST_CASE("with transfers 1F1B pays for a round trip every p micro-batches") {
  over_transfers([](const Size& size) {
    if (size.c > std::min(size.F, size.B())) return;
    const int more = (size.m - 1) * (size.p - 1) / size.p;
    CHECK(makespan_of("1f1b", size) ==
          (size.m + size.p - 1) * size.FB() + 2 * (size.p - 1 + more) * size.c);
  });
}

}  // namespace
}  // namespace stageline::closed_forms_tests
