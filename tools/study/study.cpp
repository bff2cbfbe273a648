#include "tools/study/study.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/problem.hpp"
#include "tools/study/figures/contradictions.hpp"
#include "tools/study/figures/fit.hpp"
#include "tools/study/figures/run_figures.hpp"
#include "tools/study/pace/pace.hpp"
#include "tools/study/pace/stillness.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/run/run.hpp"

namespace stageline {
namespace {

constexpr int buffered_steps = 3;  // until both of two buffers are in use

void measure_rates(Outcome& outcome, const Case& asked, const Pace& pace) {
  outcome.step_time = pace.step.time;
  outcome.settled = pace.step.settled && !outcome.grows;
  if (pace.period) {
    outcome.period = pace.period;
    outcome.round = pace.round;
  }
  outcome.throughput_unit = outcome.microbatch_size == 0 ? "micro-batches/s"
                            : outcome.sample.empty()     ? "samples/s"
                                                         : outcome.sample + "s/s";
  if (outcome.step_time == Time{}) return;
  const double step = to_seconds(outcome.step_time);
  outcome.throughput = throughput_of(outcome);
  // Data-parallel pipelines update together.
  const int updates = updates_by_step(outcome.program.settings.weights)
                          ? 1
                          : outcome.microbatches / asked.pipelines();
  // One device omits and splits the same passes as the schedule.
  const Time alone = time_alone(asked, outcome.program, outcome.plan.partition,
                                std::int64_t{outcome.microbatches} * outcome.copies, updates);
  outcome.speedup = to_seconds(alone) / step;
  outcome.bubble_fraction =
      bubble_of(outcome.step_time, outcome.devices, busy_in_a_step(outcome.program, outcome.graph));
  outcome.exposed_communication = to_seconds(outcome.step_time - pace.with_free_links) / step;
}

}  // namespace

// The scheduler may have been asked for a rule that its order does not keep.
void check_staleness(const std::string& schedule, WeightRule rule,
                     const std::vector<StageVersions>& versions) {
  for (std::size_t s = 0; s < versions.size() && rule == WeightRule::double_buffer; ++s) {
    if (versions[s].staleness_max <= 1) continue;
    throw UsageError(fmt::format(
        "{}: weights: double_buffer wants each step's forwards behind the update of the step but "
        "one before, but stage {} runs some {:g} update(s) early; take stash or latest",
        schedule, s, versions[s].staleness_max - 1));
  }
  if (rule != WeightRule::flush) return;
  for (std::size_t s = 0; s < versions.size(); ++s) {
    if (versions[s].staleness_max <= 0) continue;
    throw UsageError(fmt::format(
        "{}: weights: flush wants each step's forwards behind the update of the step before, but "
        "stage {} runs some {:g} update(s) early; take stash or latest",
        schedule, s, versions[s].staleness_max));
  }
}

Outcome study(const Case& asked, Curves curves) {
  Outcome outcome;
  const Layout layout = checked_layout(asked);
  outcome.plan = layout.plan;
  outcome.costs = costs_of(asked, layout);

  if (asked.program) validate(*asked.program);  // before any pass relies on it
  const std::optional<WeightRule> rule =
      asked.program ? std::optional(asked.program->settings.weights) : asked.weights;
  const bool synchronous =
      rule ? *rule == WeightRule::flush : asked.spec.scheduler->synchrony == Synchrony::synchronous;
  outcome.synchrony = synchronous ? Synchrony::synchronous : Synchrony::asynchronous;
  outcome.devices = static_cast<int>(asked.cluster.devices.size());
  int steps = asked.steps;
  if (steps == 0) {
    const int depth = 3 * outcome.devices;  // micro-batches until versions and memory are steady
    steps = synchronous ? 1 : (depth + asked.microbatches - 1) / asked.microbatches;
  }
  outcome.schedule =
      asked.program ? asked.program->schedule : spelled({asked.spec.scheduler, layout.knobs});
  const int longest = std::max(steps, steps_of_a_pace(asked, layout, synchronous));
  Runs runs(asked, layout, outcome.costs, longest);
  const bool free = asked.steps == 0 && !asked.program;
  if (free && runs.program(steps).settings.weights == WeightRule::double_buffer) {
    steps = std::max(steps, buffered_steps);
  }
  if (free && synchronous && runs.second_step_differs()) steps = 2;
  if (free && !synchronous) {
    const Stillness still = stillness_of(runs, outcome.costs, steps, longest);
    steps = still.steps;
    outcome.grows = still.grows;
  }
  const Run& shown = runs.validated(steps);
  outcome.microbatches = shown.program.microbatches / shown.program.settings.sequence_chunks;
  outcome.lower_bound = shown.program.settings.sequence_chunks > 1 && !asked.slice;
  outcome.microbatch_size = asked.model.batch;
  outcome.copies = asked.copies();
  outcome.all_devices = asked.device_count();
  outcome.sample = asked.model.sample;

  outcome.timeline = timeline_of(shown.program, shown.graph, shown.times);
  outcome.metrics = metrics_of(shown.program, shown.graph, shown.times);
  outcome.memory = memory_of(shown.program, outcome.costs, outcome.timeline, curves);
  outcome.versions = versions_of(shown.program, outcome.timeline);
  outcome.critical_path = critical_path(shown.graph, shown.times);
  for (std::size_t d = 0; d < outcome.memory.device.size(); ++d) {
    outcome.memory.device[d].reserve = asked.cluster.devices[d].reserve;
  }

  check_staleness(outcome.schedule, shown.program.settings.weights, outcome.versions);
  set_fit(asked.cluster, outcome);
  const bool given = asked.program && !repeats(asked);
  const Pace pace = given ? pace_of(shown) : pace_of(asked, layout, runs, synchronous);
  Run run = runs.take(steps);
  outcome.program = std::move(run.program);
  outcome.reordered = std::move(run.reordered);
  outcome.graph = std::move(run.graph);
  outcome.times = std::move(run.times);
  measure_rates(outcome, asked, pace);
  outcome.figures = figures_of(outcome);
  check_answer(asked, outcome);
  return outcome;
}

}  // namespace stageline
