// A case is scheduled once, and what it is cut or repeated to is what its scheduler would write.
#include "tools/study/run/run.hpp"

#include <doctest/doctest.h>

#include <random>

#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline::run_tests {
namespace {

Case case_of(const ScheduleSpec& spec, int devices, int microbatches) {
  Case asked;
  asked.model = uniform_model("layers=12,forward=1ms,input_grad=3ms,weight_grad=2ms");
  asked.cluster = uniform_cluster(devices, LinkSpec{parse_bandwidth("1GB/s"), parse_time("1ms")},
                                  parse_bytes("1GB"));
  asked.spec = spec;
  asked.microbatches = microbatches;
  return asked;
}

// The schedules of all knobs for which there is a program, by name and length.
template <class Check>
void for_all_schedules(int devices, int microbatches, Check&& check) {
  for (const ScheduleSpec& spec : test::all_specs(devices)) {
    const Case asked = case_of(spec, devices, microbatches);
    try {
      const Layout layout = lay_out(asked);
      const Costs costs = costs_of(asked, layout);
      program_of(asked, layout, costs, 1);
      CAPTURE(spelled({spec.scheduler, layout.knobs}));
      CAPTURE(devices);
      CAPTURE(microbatches);
      check(asked, layout, costs);
    } catch (const UsageError&) {
      continue;  // numbers that do not suit
    }
  }
}

TEST_CASE("programs of all lengths from one schedule are those that the scheduler writes") {
  std::mt19937 random(7);
  int compared = 0;
  for (const int devices : {1, 2, 3, 4}) {
    for (const int microbatches : {1, 3, 4, 8}) {
      for_all_schedules(devices, microbatches,
                        [&](const Case& asked, const Layout& layout, const Costs& costs) {
                          if (!test::chosen(random, 18)) return;
                          const int longest = 1 + static_cast<int>(random() % 5);
                          Runs runs(asked, layout, costs, longest);
                          for (int i = 0; i < 4; ++i) {
                            const int steps = 1 + static_cast<int>(random() % 9);
                            CAPTURE(steps);
                            CHECK(runs.program(steps) == program_of(asked, layout, costs, steps));
                            ++compared;
                          }
                        });
    }
  }
  CHECK(compared > (test::thorough ? 4000 : 120));
}

int calls = 0;

// The policy of another scheduler, counting.
template <const char* const& name>
Program counted(const Problem& problem) {
  ++calls;
  return scheduler(name).schedule(problem);
}

constexpr const char* searching = "zb_auto";
constexpr const char* streaming = "pipedream";

TEST_CASE("a row of a comparison is scheduled once") {
  for (const auto& [name, schedule] :
       {std::pair(searching, &counted<searching>), std::pair(streaming, &counted<streaming>)}) {
    for (const std::optional<WeightRule> weights :
         {std::optional<WeightRule>(), std::optional(WeightRule::stash)}) {
      ScheduleSpec spec = test::spec(name);
      Scheduler counting = *spec.scheduler;
      counting.schedule = schedule;
      spec.scheduler = &counting;
      Case asked = case_of(spec, 4, 8);
      asked.weights = weights;
      calls = 0;
      const Outcome outcome = study(asked);
      CHECK(calls == 1);
      asked.spec = test::spec(name);
      CHECK(study(asked).step_time == outcome.step_time);
    }
  }
}

TEST_CASE("a run is made once and can be taken") {
  const Case asked = case_of(test::spec("1f1b"), 4, 8);
  const Layout layout = lay_out(asked);
  const Costs costs = costs_of(asked, layout);
  Runs runs(asked, layout, costs, 3);
  const Run& three = runs.of(3);
  CHECK(&runs.validated(3) == &three);
  CHECK(three.program.steps == 3);
  const Time last = makespan(three.times);
  CHECK(makespan(runs.take(3).times) == last);
  CHECK(makespan(runs.of(3).times) == last);
}

}  // namespace
}  // namespace stageline::run_tests
