// How long does each step from schedule to memory profile take, a task, and how much room does a
// task take? 1F1B at three sizes, without messages, with a wire for each pair of devices, and with
// ports that neighbours share. "bare" is the reference: the same order, hand-written; every step
// prints how many times the bare recurrence's time, taken right before it, it takes per run.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <memory>
#include <stdexcept>

#include "sim/analysis/memory.hpp"
#include "sim/base/pages.hpp"
#include "tests/benchmarks/pipeline.hpp"

namespace stageline::bench {
namespace {

// Everything that a benchmark may start from. One pipeline at a time: the largest holds 600 MB.
struct Stages {
  Pipeline pipeline;
  Costs costs;
  Problem problem;
  Program compute_only;
  Program program;
  TaskGraph graph;
  TaskTimes times;
  Timeline timeline;
};

Stages prepared(const Pipeline& pipeline) {
  Stages made;
  made.pipeline = pipeline;
  made.costs = costs_of(pipeline);
  made.problem = problem_of(pipeline);
  made.compute_only = scheduler("1f1b").schedule(made.problem);
  made.program = complete(made.compute_only, made.costs);
  made.graph = compile(made.program, made.costs);
  made.times = simulate(made.graph);
  made.timeline = timeline_of(made.program, made.graph, made.times);
  if (shares_resources(made.graph) != (pipeline.wires == Wires::ports)) {
    throw std::logic_error("ports must be shared, and nothing else");
  }
  BareTimes bare;
  if (pipeline.wires != Wires::ports && bare_recurrence(pipeline, bare) != makespan(made.times)) {
    throw std::logic_error("the bare recurrence does not follow the program");
  }
  return made;
}

const Stages& stages_of(const Pipeline& pipeline) {
  static std::unique_ptr<Stages> kept;
  const bool same = kept && kept->pipeline.devices == pipeline.devices &&
                    kept->pipeline.microbatches == pipeline.microbatches &&
                    kept->pipeline.wires == pipeline.wires;
  if (!same) {
    kept.reset();
    kept = std::make_unique<Stages>(prepared(pipeline));
  }
  return *kept;
}

std::size_t ops(const Program& program) {
  std::size_t sum = 0;
  for (const auto& list : program.ops) sum += list.size();
  return sum;
}

std::size_t spans(const Timeline& timeline) {
  std::size_t sum = 0;
  for (const auto& lane : timeline.lanes) sum += lane.size();
  return sum;
}

template <class T>
std::size_t held(const std::vector<T>& items) {
  return items.capacity() * sizeof(T);
}

std::size_t held(const TaskGraph& graph) {
  return held(graph.op) + held(graph.partner) + held(graph.lane) + held(graph.path_of) +
         held(graph.duration) + held(graph.need_begin) + held(graph.need) + held(graph.lane_begin) +
         held(graph.lane_task) + held(graph.lanes) + held(graph.paths);
}

// One step, timed. `items` are what its time is divided by; both are printed.
struct Step {
  const char* name;
  const char* item;
  std::size_t (*items)(const Stages&);
  void (*once)(const Stages&);
};

std::size_t tasks_of(const Stages& s) { return s.graph.tasks(); }

template <class Result>
void keep(Result&& result) {
  benchmark::DoNotOptimize(&result);
  benchmark::ClobberMemory();
}

BareTimes bare_times;

constexpr Step steps[] = {
    {"bare", "ns_task", tasks_of,
     [](const Stages& s) { keep(bare_recurrence(s.pipeline, bare_times)); }},
    {"schedule", "ns_op", [](const Stages& s) { return ops(s.compute_only); },
     [](const Stages& s) { keep(scheduler("1f1b").schedule(s.problem)); }},
    {"complete", "ns_op", [](const Stages& s) { return ops(s.program); },
     [](const Stages& s) { keep(complete(s.compute_only, s.costs)); }},
    {"compile", "ns_task", tasks_of, [](const Stages& s) { keep(compile(s.program, s.costs)); }},
    {"sweep", "ns_task", tasks_of, [](const Stages& s) { keep(sweep(s.graph)); }},
    {"run", "ns_task", tasks_of, [](const Stages& s) { keep(run(s.graph)); }},
    {"timeline", "ns_span", [](const Stages& s) { return spans(s.timeline); },
     [](const Stages& s) { keep(timeline_of(s.program, s.graph, s.times)); }},
    {"memory", "ns_span", [](const Stages& s) { return spans(s.timeline); },
     [](const Stages& s) { keep(memory_of(s.program, s.costs, s.timeline)); }},
};

// Of the bare recurrence, the least of a few runs.
double bare_seconds(const Pipeline& pipeline) {
  std::clock_t least = std::numeric_limits<std::clock_t>::max();
  for (int i = 0; i < 5; ++i) {
    const std::clock_t start = std::clock();
    keep(bare_recurrence(pipeline, bare_times));
    least = std::min(least, std::clock() - start);
  }
  return static_cast<double>(least) / CLOCKS_PER_SEC;
}

void measure(benchmark::State& state, const Pipeline& pipeline, const Step& step) {
  const Stages& stages = stages_of(pipeline);
  const double bare = bare_seconds(pipeline);
  // Processor time: others may be at work on the machine.
  const std::clock_t start = std::clock();
  for (auto _ : state) step.once(stages);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC /
                         static_cast<double>(state.iterations());
  state.counters[step.item] = 1e9 * seconds / static_cast<double>(step.items(stages));
  if (bare > 0) state.counters["times_bare"] = seconds / bare;
  const double tasks = stages.graph.tasks();
  state.counters["tasks"] = tasks;
  state.counters["bytes_task"] =
      static_cast<double>(held(stages.graph) + held(stages.times.available)) / tasks;
}

const char* name(Wires wires) {
  switch (wires) {
    case Wires::none:
      return "none";
    case Wires::own:
      return "own";
    case Wires::ports:
      return "ports";
  }
  return "";
}

void register_all() {
  struct Size {
    int devices;
    int microbatches;
  };
  for (const Size size : {Size{8, 64}, Size{32, 1024}, Size{128, 8192}}) {
    for (const Wires wires : {Wires::none, Wires::own, Wires::ports}) {
      Pipeline pipeline;
      pipeline.devices = size.devices;
      pipeline.microbatches = size.microbatches;
      pipeline.wires = wires;
      for (const Step& step : steps) {
        const std::string title =
            fmt::format("{}x{}/{}/{}", size.devices, size.microbatches, name(wires), step.name);
        benchmark::RegisterBenchmark(
            title.c_str(),
            [pipeline, &step](benchmark::State& state) { measure(state, pipeline, step); })
            ->Unit(benchmark::kMillisecond)
            ->MinTime(0.05)
            ->Repetitions(5)
            ->ReportAggregatesOnly();
      }
    }
  }
}

}  // namespace
}  // namespace stageline::bench

int main(int argc, char** argv) {
  stageline::keep_freed_memory();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  stageline::bench::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
