#include "tools/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/errors.hpp"
#include "sim/problem.hpp"

namespace stageline {
namespace {

std::vector<std::string> device_names(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const Device& device : cluster.devices) names.push_back(device.name);
  return names;
}

}  // namespace

Layout lay_out(const Case& asked) {
  Layout layout;
  const int devices = static_cast<int>(asked.cluster.devices.size());
  if (asked.program) {
    layout.placement = asked.program->placement;
    PartitionRequest request{asked.model, asked.cluster, asked.program->stages(), false, "", {}};
    for (const StagePlace& place : layout.placement.stage) {
      request.replicas.push_back(static_cast<int>(place.replicas.size()));
    }
    // A placement in which every device has one stage; else (V shapes) the cut knows no devices.
    const int placed = std::accumulate(request.replicas.begin(), request.replicas.end(), 0);
    if (placed != devices) request.replicas.clear();
    layout.plan = partition(asked.partition, request);
    return layout;
  }
  layout.knobs = asked.spec.knobs;
  const Scheduler& scheduler = *asked.spec.scheduler;
  layout.placement = scheduler.place(devices, layout.knobs);
  const auto replicas = layout.knobs.find("replicas");
  const bool free = replicas != layout.knobs.end() && replicas->second == "straight";
  PartitionRequest request{asked.model, asked.cluster, layout.placement.stages(), free, "", {}};
  if (replicas != layout.knobs.end() && !free) {
    for (const StagePlace& place : layout.placement.stage) {
      request.replicas.push_back(static_cast<int>(place.replicas.size()));
    }
  }
  layout.plan = partition(asked.partition, request);
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

}  // namespace stageline
