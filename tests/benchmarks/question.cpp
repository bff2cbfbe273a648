// How long does a whole question take: every schedule on 64 and on 1024 H100s, eight pipeline and
// eight tensor ranks, 64 micro-batches? Wall time and processor time, with one row at a time and
// with one a core. To be answered while a user waits: in half a second on two cores.
//
// And how does a question grow? 1F1B with links on 4096 devices, and its peak memory (to be
// reached: 300 MB); on 256 to 1024 devices, 1024 micro-batches (5 s of processor time); and every
// schedule on 64 (6 s).
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "tools/compare/comparison.hpp"

namespace stageline {
namespace {

SettingRequest question(int data) {
  SettingRequest request;
  request.trace = "model:gpt@h100,layers=80,hidden=8192,heads=64,vocab=51200";
  request.cluster.cluster = "h100x8*" + std::to_string(8 * data);
  request.degrees.tensor = 8;
  request.degrees.pipeline = 8;
  request.degrees.data = data;
  request.microbatches = 64;
  return request;
}

// Arguments: data-parallel replicas; rows at a time, or 0 for one a core.
void whole_question(benchmark::State& state) {
  const SettingRequest request = question(static_cast<int>(state.range(0)));
  const std::vector<ScheduleSpec> all = parse_schedules("all");
  for (auto one : state) {
    const Setting setting = read_setting(request);
    const std::vector<Row> rows = compare(request, setting, all, static_cast<int>(state.range(1)));
    benchmark::DoNotOptimize(ranked(rows, Synchrony::synchronous).sentence.data());
  }
  state.counters["rows"] = static_cast<double>(all.size());
}

SettingRequest uniform_question(int devices, int microbatches) {
  SettingRequest request;
  request.trace = "uniform:layers=" + std::to_string(std::max(devices, 256));
  request.cluster.link = parse_link("10GB/s,5us");
  request.devices = {devices};
  request.microbatches = microbatches;
  return request;
}

// Arguments: devices; micro-batches. The peak is that of the program so far.
void one_schedule(benchmark::State& state) {
  const SettingRequest request =
      uniform_question(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  const ScheduleSpec spec = parse_schedules("1f1b").front();
  for (auto one : state) {
    const Setting setting = read_setting(request);
    const Outcome outcome = study(make_case(request, setting, spec, request.devices.front()));
    benchmark::DoNotOptimize(outcome.step_time.count());
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  state.counters["peak_MB"] = static_cast<double>(used.ru_maxrss) * 1024 / 1e6;
}

void every_schedule(benchmark::State& state) {
  const SettingRequest request = uniform_question(64, 1024);
  const std::vector<ScheduleSpec> all = parse_schedules("all");
  for (auto one : state) {
    const std::vector<Row> rows = compare(request, read_setting(request), all, 1, {}, Keep::facts);
    benchmark::DoNotOptimize(ranked(rows, Synchrony::synchronous).sentence.data());
  }
}

}  // namespace
}  // namespace stageline

BENCHMARK(stageline::one_schedule)
    ->ArgNames({"devices", "microbatches"})
    ->Args({4096, 8})
    ->Args({256, 1024})
    ->Args({512, 1024})
    ->Args({1024, 1024})
    ->Iterations(1)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

BENCHMARK(stageline::every_schedule)
    ->Iterations(1)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

BENCHMARK(stageline::whole_question)
    ->ArgNames({"dp", "jobs"})
    ->ArgsProduct({{1, 16}, {1, 0}})
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
