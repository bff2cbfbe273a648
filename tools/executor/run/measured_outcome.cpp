// Turns an execution into an Outcome.
#include "tools/executor/run/measured_outcome.hpp"

#include "tools/study/figures/run_figures.hpp"

namespace stageline::executor {

Outcome measured_outcome(const Outcome& predicted, const Execution& run,
                         const std::vector<HeldBytes>& held) {
  Outcome outcome = predicted;
  outcome.graph = run.graph;
  outcome.times = run.times;
  outcome.timeline = timeline_of(outcome.program, run.graph, run.times);
  outcome.metrics = metrics_of(outcome.program, run.graph, run.times);
  outcome.memory = memory_of(outcome.program, outcome.costs, outcome.timeline, Curves::none);
  outcome.versions = versions_of(outcome.program, outcome.timeline);
  outcome.critical_path.clear();
  outcome.period.reset();
  outcome.settled = false;
  for (std::size_t d = 0; d < held.size(); ++d) {
    DeviceMemory& memory = outcome.memory.device[d];
    memory.peak = Bytes{held[d].peak};
    memory.at_peak = {};
    memory.stash_at_peak = {};
    memory.stashes_at_peak = 0;
    memory.peak_op.reset();
  }
  // The mean of the steps behind the first, where there are several.
  const std::vector<Time> ends = step_ends(outcome.program, run.graph, run.times);
  const auto steps = static_cast<std::int64_t>(ends.size());
  outcome.step_time = steps == 1 ? ends[0] : (ends.back() - ends.front()) / (steps - 1);
  outcome.figures = figures_of(outcome);
  if (outcome.step_time == Time{}) return outcome;
  const double step = to_seconds(outcome.step_time);
  const double faster = to_seconds(predicted.step_time) / step;
  outcome.throughput *= faster;
  outcome.speedup *= faster;
  Time busy{};
  for (const DeviceMetrics& device : outcome.metrics.device) busy += device.busy;
  const double all = to_seconds(outcome.metrics.makespan) * outcome.devices;
  outcome.bubble_fraction = all > 0 ? 1 - to_seconds(busy) / all : 0;
  const double free_links = to_seconds(outcome.metrics.makespan_free_links);
  outcome.exposed_communication =
      all > 0 ? 1 - free_links / to_seconds(outcome.metrics.makespan) : 0;
  return outcome;
}

}  // namespace stageline::executor
