#include "tools/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cost_models/stage_costs.hpp"
#include "sim/errors.hpp"
#include "sim/passes.hpp"
#include "sim/problem.hpp"

namespace stageline {
namespace {

std::vector<std::string> device_names(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const Device& device : cluster.devices) names.push_back(device.name);
  return names;
}

// Placement and cut of a schedule: the partitioner may choose the replicas of a schedule that has
// them.
struct Layout {
  Placement placement;
  PartitionPlan plan;
  Knobs knobs;
};

Layout lay_out(const Case& asked) {
  Layout layout;
  const int devices = static_cast<int>(asked.cluster.devices.size());
  if (asked.program) {
    layout.placement = asked.program->placement;
    layout.plan = partition(asked.partition,
                            {asked.model, asked.cluster, asked.program->stages(), false, ""});
    return layout;
  }
  layout.knobs = asked.spec.knobs;
  const Scheduler& scheduler = *asked.spec.scheduler;
  layout.placement = scheduler.place(devices, layout.knobs);
  const auto replicas = layout.knobs.find("replicas");
  const bool free = replicas != layout.knobs.end() && replicas->second == "straight";
  layout.plan =
      partition(asked.partition, {asked.model, asked.cluster, layout.placement.stages(), free, ""});
  const auto& chosen = layout.plan.replicas;
  if (free && std::any_of(chosen.begin(), chosen.end(), [](int r) { return r != 1; })) {
    std::string text;
    for (const int count : chosen) text += fmt::format("{}{}", text.empty() ? "" : "-", count);
    replicas->second = text;
    layout.placement = scheduler.place(devices, layout.knobs);
  }
  for (std::size_t s = 0; s < layout.plan.devices.size(); ++s) {
    layout.placement.stage[s].replicas = layout.plan.devices[s];  // a stage that spans machines
  }
  if (layout.placement.stages() != layout.plan.partition.stages) {
    throw UsageError(fmt::format(
        "the partition \"{}\" makes {} stages, but {} on {} devices needs {}", asked.partition,
        layout.plan.partition.stages, scheduler.name, devices, layout.placement.stages()));
  }
  return layout;
}

Program program_of(const Case& asked, const Layout& layout, const Costs& costs, int steps) {
  if (asked.program) return *asked.program;
  Problem problem;
  problem.placement = layout.placement;
  problem.costs = costs;
  problem.microbatches = asked.microbatches;
  problem.steps = steps;
  problem.devices = device_names(asked.cluster);
  for (const Device& device : asked.cluster.devices) problem.memory.push_back(device.memory);
  problem.knobs = layout.knobs;
  Program program = asked.spec.scheduler->schedule(problem);
  if (asked.weights) program.weights = *asked.weights;
  return program;
}

// Steps until a pipeline of `depth` devices runs steadily, and to drain behind the step that
// counts.
int settling_steps(int depth, int microbatches) {
  return (3 * depth + microbatches - 1) / microbatches;
}

// From the end of one step to the end of the next, once the transient is over.
Time steady_step(const Case& asked, const Layout& layout, const Costs& costs, bool synchronous) {
  const int depth = static_cast<int>(asked.cluster.devices.size());
  const int before = synchronous ? 1 : settling_steps(depth, asked.microbatches);
  const int steps = before + 1 + (synchronous ? 0 : before);
  const Program program = complete(program_of(asked, layout, costs, steps), costs);
  const TaskGraph graph = compile(program, costs);
  const std::vector<Time> ends = step_ends(program, graph, simulate(graph));
  const auto at = static_cast<std::size_t>(before);
  return ends[at] - ends[at - 1];
}

// The same step on one device: every layer of every micro-batch, and the updates the schedule
// makes.
Time one_device_step(const Case& asked, const Program& program) {
  double fastest = 0;
  for (const Device& device : asked.cluster.devices) fastest = std::max(fastest, device.rate);
  Time update{};
  for (const Layer& layer : asked.model.layers) update += layer.update;
  const bool each =
      program.weights != WeightRule::flush && program.weights != WeightRule::double_buffer;
  const std::int64_t updates = each ? program.microbatches : 1;
  const Time whole = forward_backward(asked.model) * program.microbatches + update * updates;
  return from_seconds(to_seconds(whole) / fastest);
}

void judge_fit(Outcome& outcome) {
  outcome.fit = Fit::yes;
  for (std::size_t d = 0; d < outcome.memory_limit.size(); ++d) {
    const auto& limit = outcome.memory_limit[d];
    if (!limit) {
      if (outcome.fit == Fit::yes) outcome.fit = Fit::unknown;
    } else if (outcome.memory.device[d].peak > *limit) {
      outcome.fit = Fit::no;
    }
  }
}

void measure_rates(Outcome& outcome, const Case& asked) {
  const double step = to_seconds(outcome.step_time);
  Time busy{};
  Time link{};
  for (const DeviceMetrics& device : outcome.metrics.device) {
    busy += device.busy;
    link += device.idle_by[static_cast<std::size_t>(IdleKind::link)];
  }
  const double busy_a_step = to_seconds(busy) / outcome.program.steps;
  const auto samples = static_cast<double>(std::max(outcome.microbatch_size, 1));
  outcome.throughput_unit = outcome.microbatch_size == 0 ? "micro-batches/s"
                            : outcome.sample.empty()     ? "samples/s"
                                                         : outcome.sample + "s/s";
  if (step > 0) {
    outcome.throughput = outcome.microbatches * samples / step;
    outcome.speedup = to_seconds(one_device_step(asked, outcome.program)) / step;
    outcome.bubble_fraction = 1 - busy_a_step / (outcome.devices * step);
  }
  if (outcome.metrics.makespan > Time{}) {
    outcome.exposed_communication =
        to_seconds(link) / (outcome.devices * to_seconds(outcome.metrics.makespan));
  }
}

}  // namespace

int Outcome::peak_device() const {
  const auto peak = std::max_element(
      memory.device.begin(), memory.device.end(),
      [](const DeviceMemory& a, const DeviceMemory& b) { return a.peak < b.peak; });
  return static_cast<int>(peak - memory.device.begin());
}

int Outcome::versions_peak() const {
  int most = 1;
  for (const StageVersions& stage : versions) most = std::max(most, stage.held_peak);
  return most;
}

double Outcome::staleness_max() const {
  double most = 0;
  for (const StageVersions& stage : versions) most = std::max(most, stage.staleness_max);
  return most;
}

Outcome study(const Case& asked, Curves curves) {
  Outcome outcome;
  const Layout layout = lay_out(asked);
  check(layout.plan.partition, asked.model);
  outcome.plan = layout.plan;
  outcome.costs = stage_costs(asked.model, layout.plan.partition, layout.placement, asked.cluster);

  const bool synchronous = asked.program
                               ? asked.program->weights == WeightRule::flush
                               : asked.spec.scheduler->synchrony == Synchrony::synchronous;
  outcome.synchrony = synchronous ? Synchrony::synchronous : Synchrony::asynchronous;
  outcome.devices = static_cast<int>(asked.cluster.devices.size());
  int steps = asked.steps;
  if (steps == 0) steps = synchronous ? 1 : settling_steps(outcome.devices, asked.microbatches);
  ScheduleSpec shown = asked.spec;
  shown.knobs = layout.knobs;
  outcome.schedule = asked.program ? asked.program->schedule : spelled(shown);
  outcome.program = complete(program_of(asked, layout, outcome.costs, steps), outcome.costs);
  validate(outcome.program);
  outcome.microbatches = outcome.program.microbatches;
  outcome.microbatch_size = asked.model.batch;
  outcome.sample = asked.model.sample;

  outcome.graph = compile(outcome.program, outcome.costs);
  outcome.times = simulate(outcome.graph);
  outcome.timeline = timeline_of(outcome.program, outcome.graph, outcome.times);
  outcome.metrics = metrics_of(outcome.program, outcome.graph, outcome.times);
  outcome.memory = memory_of(outcome.program, outcome.costs, outcome.timeline, curves);
  outcome.versions = versions_of(outcome.program, outcome.timeline);
  outcome.critical_path = critical_path(outcome.graph, outcome.times);
  for (const Device& device : asked.cluster.devices) outcome.memory_limit.push_back(device.memory);

  if (asked.program) {
    const std::vector<Time> ends = step_ends(outcome.program, outcome.graph, outcome.times);
    const std::size_t last = ends.size() - 1;
    outcome.step_time = last == 0 ? ends[0] : ends[last] - ends[last - 1];
  } else {
    outcome.step_time = steady_step(asked, layout, outcome.costs, synchronous);
  }
  judge_fit(outcome);
  measure_rates(outcome, asked);
  return outcome;
}

}  // namespace stageline
