// How long does a whole question take: every schedule on 64 and on 1024 H100s, eight pipeline and
// eight tensor ranks, 64 micro-batches? Wall time and processor time, with one row at a time and
// with one a core. To be answered while a user waits: in half a second on two cores.
#include <benchmark/benchmark.h>

#include <iterator>
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

}  // namespace
}  // namespace stageline

BENCHMARK(stageline::whole_question)
    ->ArgNames({"dp", "jobs"})
    ->ArgsProduct({{1, 16}, {1, 0}})
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
