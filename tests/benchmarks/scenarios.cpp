// How long does a scenario take, a task? 1F1B on 8 devices with 64 micro-batches, jitter 5 %, wires
// of their own. "bare" is the reference: the same order, hand-written, over the same blocks of 16;
// "sweep" the batched engine; "draw" what makes the durations. "pool" and "tbb" are draw and sweep
// of chunks of 64 scenarios on threads, ours and oneTBB's. "whatif" is all that the command does:
// two steps, no messages. bench_scenarios --million asks for a million scenarios.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>

#include "cost_models/perturbation/perturbation.hpp"
#include "sim/batch/batched_sweep.hpp"
#include "tests/benchmarks/bare_batch.hpp"
#include "tools/base/parallel.hpp"
#include "tools/study/study.hpp"
#include "tools/study/whatif/scenario_runs.hpp"
#include "traces/traces.hpp"

#ifdef STAGELINE_TBB
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#endif

namespace stageline::bench {
namespace {

constexpr std::size_t width = BatchedSweep::width;
constexpr std::size_t chunk = 64;  // scenarios
constexpr std::int64_t usual = 10'000;

// By whether they are drawn: so many that starting threads is nothing, 0.1 s or so of one core.
constexpr std::size_t chunks_of(bool draws) { return draws ? 64 : 2048; }

Pipeline pipeline() {
  Pipeline made;
  made.devices = 8;
  made.microbatches = 64;
  made.wires = Wires::own;
  return made;
}

Perturbation jitter() {
  Perturbation made;
  made.jitter = parse_jitter("5%,transfers", "--jitter");
  return made;
}

TaskGraph graph_of(const Pipeline& pipeline) {
  const Costs costs = costs_of(pipeline);
  return compile(complete(scheduler("1f1b").schedule(problem_of(pipeline)), costs), costs);
}

// Everything but the threads.
struct Stages {
  TaskGraph graph = graph_of(pipeline());
  BatchedSweep sweep{graph};
  Scenarios scenarios{graph, jitter(), 64};
};

const Stages& stages() {
  static const Stages made;
  return made;
}

// What a thread works with.
struct Bench {
  std::vector<std::int64_t> duration = std::vector<std::int64_t>(stages().graph.tasks() * width);
  std::vector<std::int64_t> available = std::vector<std::int64_t>(duration.size());
};

// `since`: std::clock() at the first iteration. Processor time: others may be at work on the
// machine.
void count(benchmark::State& state, std::clock_t since, std::size_t scenarios) {
  const double took = 1e9 * static_cast<double>(std::clock() - since) / CLOCKS_PER_SEC;
  const double each = took / static_cast<double>(state.iterations() * scenarios);
  state.counters["ns_task_scenario"] = each / stages().graph.tasks();
  state.counters["tasks"] = stages().graph.tasks();
}

void bare(benchmark::State& state) {
  Bench bench;
  BareBatch bare(pipeline());
  stages().scenarios.draw(0, width, bench.duration);
  bare.set_durations(stages().graph, bench.duration);
  std::vector<std::int64_t> expected(width);
  stages().sweep.ends(bench.duration, bench.available);
  stages().sweep.makespans(bench.available, expected);
  const std::clock_t since = std::clock();
  for (auto one : state) {
    bare.run();
    benchmark::ClobberMemory();
  }
  count(state, since, width);
  if (bare.makespans() != expected)
    throw std::logic_error("the bare recurrence has another result");
}

void sweep(benchmark::State& state) {
  Bench bench;
  stages().scenarios.draw(0, width, bench.duration);
  const std::clock_t since = std::clock();
  for (auto one : state) {
    stages().sweep.ends(bench.duration, bench.available);
    benchmark::ClobberMemory();
  }
  count(state, since, width);
}

void draw(benchmark::State& state) {
  Bench bench;
  std::uint64_t first = 0;
  const std::clock_t since = std::clock();
  for (auto one : state) {
    stages().scenarios.draw(first, width, bench.duration);
    benchmark::ClobberMemory();
    first += width;
  }
  count(state, since, width);
}

// Argument 1: whether each chunk draws its durations, or sweeps those of the chunk before.
void take(std::size_t c, bool draws, Bench& bench) {
  for (std::size_t first = c * chunk; first < (c + 1) * chunk; first += width) {
    if (draws) stages().scenarios.draw(first, width, bench.duration);
    stages().sweep.ends(bench.duration, bench.available);
    benchmark::ClobberMemory();
  }
}

void pool(benchmark::State& state) {
  const bool draws = state.range(1) != 0;
  const std::clock_t since = std::clock();
  for (auto one : state) {
    in_parallel_with(chunks_of(draws), static_cast<int>(state.range(0)), [&] {
      return [draws, bench = std::make_shared<Bench>()](std::size_t c) { take(c, draws, *bench); };
    });
  }
  count(state, since, chunk * chunks_of(draws));
}

#ifdef STAGELINE_TBB
void tbb(benchmark::State& state) {
  const bool draws = state.range(1) != 0;
  oneapi::tbb::task_arena arena(static_cast<int>(state.range(0)));
  const std::clock_t since = std::clock();
  for (auto one : state) {
    oneapi::tbb::enumerable_thread_specific<Bench> benches;
    arena.execute([&] {
      oneapi::tbb::parallel_for(std::size_t{0}, chunks_of(draws),
                                [&](std::size_t c) { take(c, draws, benches.local()); });
    });
  }
  count(state, since, chunk * chunks_of(draws));
}
#endif

Case asked() {
  Case made;
  made.model = uniform_model("layers=8,forward=2us,input_grad=2us,weight_grad=2us");
  made.cluster = uniform_cluster(8, std::nullopt, std::nullopt);  // no link is shared
  made.spec = parse_schedules("1f1b").at(0);
  made.microbatches = 64;
  return made;
}

// Arguments: scenarios, threads.
void whatif(benchmark::State& state) {
  const Case question = asked();
  const Outcome nominal = study(question);
  ScenarioRequest request;
  request.perturbation = jitter();
  request.scenarios = state.range(0);
  request.threads = static_cast<int>(state.range(1));
  ScenarioSteps found;
  const std::clock_t since = std::clock();
  for (auto one : state) {
    found = scenario_steps(question, nominal, request);
    benchmark::DoNotOptimize(distribution_of(found.step).p95);
  }
  if (found.engine != ScenarioEngine::batched) throw std::logic_error("scenarios are not batched");
  const double tasks = static_cast<double>(found.steps) * 8 * (2 * 64 + 1);  // F, B, U
  const double took = 1e9 * static_cast<double>(std::clock() - since) / CLOCKS_PER_SEC;
  const auto scenarios = static_cast<double>(request.scenarios * state.iterations());
  state.counters["ns_task_scenario"] = took / scenarios / tasks;
  state.counters["tasks"] = tasks;
}

void register_all(bool million) {
  const auto each = [](const char* name, void (*timed)(benchmark::State&)) {
    return benchmark::RegisterBenchmark(name, timed)->Unit(benchmark::kMicrosecond);
  };
  if (million) {
    benchmark::RegisterBenchmark("whatif", whatif)
        ->ArgNames({"scenarios", "threads"})
        ->ArgsProduct({{1'000'000}, {2, 1}})
        ->UseRealTime()
        ->MeasureProcessCPUTime()
        ->Unit(benchmark::kSecond)
        ->Iterations(1);
    return;
  }
  each("bare", bare);
  each("sweep", sweep);
  each("draw", draw);
  const auto threaded = [&](const char* name, void (*timed)(benchmark::State&)) {
    each(name, timed)
        ->ArgNames({"threads", "draw"})
        ->ArgsProduct({{1, 2}, {0, 1}})
        ->UseRealTime()
        ->MeasureProcessCPUTime();
  };
  threaded("pool", pool);
#ifdef STAGELINE_TBB
  threaded("tbb", tbb);
#endif
  each("whatif", whatif)
      ->ArgNames({"scenarios", "threads"})
      ->ArgsProduct({{usual}, {1, 2}})
      ->UseRealTime()
      ->MeasureProcessCPUTime();
}

}  // namespace
}  // namespace stageline::bench

int main(int argc, char** argv) {
  const bool million = argc > 1 && std::string(argv[1]) == "--million";
  if (million) {
    std::copy(argv + 2, argv + argc, argv + 1);
    --argc;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  stageline::bench::register_all(million);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
