// How long do building a schedule and simulating it take, for each schedule, at 64 devices, four
// stages on each where it has several, and 1024 micro-batches? Processor time of one core.
#include <benchmark/benchmark.h>

#include <ctime>
#include <string>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/engine.hpp"
#include "sim/lower/passes.hpp"
#include "sim/task_graph.hpp"
#include "tests/make.hpp"

namespace stageline {
namespace {

constexpr int devices = 64;
constexpr int microbatches = 1024;

// Four stages a device, for those that can have them.
ScheduleSpec large(const Scheduler& scheduler) {
  std::string text(scheduler.name);
  for (const Knob& knob : scheduler.knobs) {
    if (knob.name == "chunks") text += ":chunks=4";
    if (knob.name == "waves") text += ":waves=2";
    if (knob.name == "sequence_chunks") text += ":sequence_chunks=4";
  }
  return test::spec(text);
}

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Problem problem_of(const ScheduleSpec& spec) {
  const int stages = test::stages_for(spec, devices);
  return test::problem_for(spec, devices,
                           uniform_costs(stages, devices, Time{1000}, Time{1000}, Time{1000}),
                           microbatches);
}

template <class Once>
void timed(benchmark::State& state, Once&& once) {
  for (auto _ : state) {
    const double before = processor_seconds();
    once();
    state.SetIterationTime(processor_seconds() - before);
  }
}

void build(benchmark::State& state, const ScheduleSpec& spec) {
  const Problem problem = problem_of(spec);
  std::size_t ops = 0;
  timed(state, [&] {
    const Program program = spec.scheduler->schedule(problem);
    ops = 0;
    for (const auto& list : program.ops) ops += list.size();
  });
  state.counters["ops"] = static_cast<double>(ops);
}

void simulate_it(benchmark::State& state, const ScheduleSpec& spec) {
  const Problem problem = problem_of(spec);
  const Program program = complete(spec.scheduler->schedule(problem), problem.costs);
  timed(state, [&] {
    const TaskGraph graph = compile(program, problem.costs);
    TaskTimes times = simulate(graph);
    benchmark::DoNotOptimize(&times);
  });
}

int run_all(int argc, char** argv) {
  for (const Scheduler* const scheduler : schedulers()) {
    const ScheduleSpec spec = large(*scheduler);
    try {
      (void)spec.scheduler->schedule(problem_of(spec));
    } catch (const UsageError&) {
      continue;  // not at this size
    }
    const auto add = [&](const std::string& what,
                         void (*once)(benchmark::State&, const ScheduleSpec&)) {
      benchmark::RegisterBenchmark((what + "/" + spelled(spec)).c_str(), once, spec)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond)
          ->Iterations(3)
          ->Repetitions(3)
          ->ReportAggregatesOnly();
    };
    add("build", build);
    add("simulate", simulate_it);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace stageline

int main(int argc, char** argv) { return stageline::run_all(argc, argv); }
