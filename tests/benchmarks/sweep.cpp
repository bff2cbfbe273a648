// How many scenarios does a sweep simulate a second, on one thread? 1F1B on eight devices with 32
// micro-batches and costs that vary: drawn scenarios, through the batched engine; slow devices;
// links, with a message for each stage. And what writing the rows takes of it. To be reached: 10⁶
// drawn scenarios in a minute on two cores, writing in a twentieth of the time.
#include <benchmark/benchmark.h>

#include <string>

#include "tools/sweep/rows.hpp"
#include "traces/gzip.hpp"

namespace stageline {
namespace {

constexpr std::int64_t chunk = 1000;

SweepSpec costs(const std::string& fixed, const std::string& axis) {
  return read_sweep(
      R"({"format": "stageline-sweep 1", "axes": {)" + axis +
      R"(}, "fixed": {"devices": 8, "microbatches": 32, "schedule": "1f1b", )" + fixed +
      R"("trace": "uniform:layers=8,forward=1ms,weights=1MB,output=1MB,stash=2MB"}})");
}

SweepSpec drawn() { return costs(R"("jitter": "5%", )", R"("scenario": "0..999999")"); }
SweepSpec slow() { return costs(R"("slow": "gpu3:{f}", )", R"("f": "1.0..2.0:lin1000000")"); }
SweepSpec links() { return costs("", R"("link": "1.0GB/s..400.0GB/s:log1000000")"); }

void rows(benchmark::State& state, SweepSpec (*spec)()) {
  SweepRunner runner(spec());
  std::int64_t first = 0;
  for (auto one : state) {
    benchmark::DoNotOptimize(runner.rows(first, chunk).data());
    first = (first + chunk) % runner.spec().scenarios();
  }
  state.SetItemsProcessed(state.iterations() * chunk);
}

void writing(benchmark::State& state, SweepSpec (*spec)()) {
  const SweepSpec asked = spec();
  const std::vector<SweepRow> rows = SweepRunner(asked).rows(0, chunk);
  for (auto one : state) {
    std::string text = csv_header(asked);
    for (const SweepRow& row : rows) text += csv_line(asked, row);
    benchmark::DoNotOptimize(gzipped(text).data());
  }
  state.SetItemsProcessed(state.iterations() * chunk);
}

void register_all() {
  using benchmark::RegisterBenchmark;
  RegisterBenchmark("rows/drawn", rows, drawn)->Unit(benchmark::kMillisecond);
  RegisterBenchmark("rows/slow", rows, slow)->Unit(benchmark::kMillisecond);
  RegisterBenchmark("rows/links", rows, links)->Unit(benchmark::kMillisecond);
  RegisterBenchmark("writing/drawn", writing, drawn)->Unit(benchmark::kMillisecond);
  RegisterBenchmark("writing/links", writing, links)->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace stageline

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  stageline::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
