// BPipe: do copies between devices keep the stashes even, in 1F1B's time?
#include "schedulers/parts/paired_stashes.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/lower/passes.hpp"
#include "tests/schedules/synchronous.hpp"
#include "tests/text.hpp"

namespace stageline::paired_stashes_tests {
namespace {

using test::Ran;
using test::equal_stages::over;
using test::equal_stages::run;
using test::equal_stages::Size;

const char* const paired = "1f1b:stashes=paired";

// Runs it with stashes of so many bytes, over links of 1 byte/ps each way.
Ran run_over_links(const char* schedule, const Size& size, std::int64_t stash) {
  Costs costs = uniform_costs(size.p, size.p, size.F, size.I, size.W, size.c);
  for (StageCosts& stage : costs.stage) {
    stage.stash_input_grad = Bytes{stash};
    stage.stash_weight_grad = Bytes{};
  }
  for (Route& route : costs.network.routes) route.bandwidth = Bandwidth{1'000'000'000'000};
  for (EdgeCosts& edge : costs.edges) edge.activation = edge.gradient = Bytes{};
  return test::run_schedule(schedule, size.p, costs, size.m, 2);
}

TEST_CASE("BPipe: no device of p holds more than ceil((p+2)/2) stashes, in the time of 1F1B") {
  over(2, 13, 1, [](Size size) {
    for (const int m : {1, size.p / 2, size.p, size.p + 1, 3 * size.p}) {
      size.m = std::max(m, 1);
      CAPTURE(size.m);
      // A copy takes no longer than the shorter op.
      const auto copy = std::min(size.F, size.B()).count();
      const Ran ran = run_over_links(paired, size, copy);
      const std::vector<int> held = test::equal_stages::peaks(ran);
      for (const int stashes : held) CHECK(stashes <= (size.p + 3) / 2);
      const Ran plain = run_over_links("1f1b", size, copy);
      // Of two steps.
      const Time waits = size.p == 4 && size.m > 2 && size.m % 2 == 0 ? Time{2 * copy} : Time{};
      CHECK(makespan(ran.times) >= makespan(plain.times));
      CHECK(makespan(ran.times) <= makespan(plain.times) + waits);
      const std::vector<int> own = test::equal_stages::peaks(plain);
      if (size.m < size.p || size.p < 4) continue;
      CHECK(*std::max_element(own.begin(), own.end()) == size.p);
      CHECK(*std::max_element(held.begin(), held.end()) == (size.p + 3) / 2);
    }
  });
}

TEST_CASE("BPipe: n-K of each n-2 stashes move, and where a copy takes long, F and B wait for it") {
  const Size size{8, 24, Time{2}, Time{1}, Time{1}, Time{}};
  const Ran ran = run_over_links(paired, size, 1);
  std::vector<int> moved(8);
  for (std::size_t device = 0; device < 8; ++device) {
    for (const Op op : ran.program.ops[device]) {
      if (op.kind == OpKind::offload) ++moved[device];
    }
  }
  // K 5, two steps. n 8: 3 of 6; n 7: 2 of 5; n 6: 1 of 4.
  CHECK(moved == std::vector<int>{2 * 12, 2 * 10, 2 * 6, 0, 0, 0, 0, 0});
  CHECK(makespan(run_over_links(paired, size, 40).times) > makespan(ran.times));
}

TEST_CASE("BPipe: a stash on its way is in both memories, and away in its home's alone") {
  // Device 0 of 4 has one stash on device 3.
  const Size size{4, 4, Time{4}, Time{4}, Time{4}, Time{}};
  const Ran ran = run_over_links(paired, size, 2);
  const MemoryProfile memory = memory_of(ran.program, ran.costs, ran.timeline);
  CHECK(nth(memory.device[0].at_peak, MemoryKind::stash).count == 3 * 2);
  CHECK(nth(memory.device[3].at_peak, MemoryKind::stash).count == 2 * 2);
  CHECK(memory.host[0].peak == Bytes{});
  CHECK(test::contains(print(ran.program), "stage 0: gpu0 stash=gpu3\nstage 1: gpu1\n"));
  CHECK(parse_program(print(ran.program)) == ran.program);
}

TEST_CASE("BPipe's stashes stay within a replica of the pipeline, and can be inputs alone") {
  const Size size{6, 8, Time{1}, Time{1}, Time{1}, Time{}};
  const Ran ran = run(paired, size);
  const Program both = replicated(ran.program, 2);
  CHECK(both.placement.stage[0].replicas == std::vector<int>{0, 6});
  CHECK(both.placement.stage[0].stash_homes == std::vector<int>{5, 11});
  validate(both);
  const Ran rebuilt = run("1f1b:stashes=paired,recompute=always", size);
  CHECK(test::equal_stages::peaks(rebuilt) == std::vector<int>(6, 1));
}

TEST_CASE("stash= names another device for each that the stage is on") {
  const auto refusal = [](const std::string& stage) {
    try {
      validate(parse_program("stageline-program 1\nmicrobatches: 1\nstage 0: " + stage +
                             "\na: 0F0 0B0\nb:\n"));
    } catch (const ProgramError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal("a stash=b") == "");
  CHECK(
      test::contains(refusal("a stash=a"),
                     "stage 0: stash= names a, where the stage is itself; name another device, or "
                     "leave it out for the host"));
  CHECK(
      test::contains(refusal("a stash=b+b"),
                     "stage 0: stash= names 2 devices, and the stage is on 1; name one for each"));
  CHECK(test::contains(refusal("a W=b stash=b"),
                       "stage 0: stash= is for a stage in one place, and here F, I and W are on "
                       "different devices"));
  CHECK(test::contains(refusal("a stash=c"), "there is no device \"c\""));
}

}  // namespace
}  // namespace stageline::paired_stashes_tests
