// Compares the peaks of an outcome with the memory that there is, and its work with its time.
#include "tools/study/figures/fit.hpp"

#include <algorithm>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline {

void set_fit(const Cluster& cluster, Outcome& outcome) {
  for (const Device& device : cluster.devices) {
    outcome.memory_limit.push_back(usable_memory(device));
  }
  for (const Host& host : cluster.hosts) outcome.host_limit.push_back(host.memory);
  outcome.fit = outcome.bytes_known() ? Fit::yes : Fit::unknown;
  if (!outcome.bytes_known()) return;
  if (outcome.grows) outcome.fit = Fit::no;
  for (std::size_t d = 0; d < outcome.memory_limit.size(); ++d) {
    const auto& limit = outcome.memory_limit[d];
    if (!limit) {
      if (outcome.fit == Fit::yes) outcome.fit = Fit::unknown;
    } else if (outcome.memory.device[d].peak > *limit) {
      outcome.fit = Fit::no;
    }
  }
  for (std::size_t h = 0; h < outcome.host_limit.size(); ++h) {
    const auto& limit = outcome.host_limit[h];
    if (limit && outcome.memory.host[h].peak > *limit) outcome.fit = Fit::no;
  }
}

double throughput_of(const Outcome& outcome) {
  const auto samples = static_cast<double>(std::max(outcome.microbatch_size, 1));
  const double step = to_seconds(outcome.step_time);
  return outcome.microbatches * samples * outcome.copies / step;
}

Time busy_in_a_step(const Program& program, const TaskGraph& graph) {
  struct Updates {
    Time time{};
    std::int64_t count = 0;
  };
  std::vector<Updates> updates(as_size(program.stages()));
  Time busy{};
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    if (op.kind == OpKind::update) {
      updates[op.stage].time += graph.duration[task];
      ++updates[op.stage].count;
    } else if (lane_of(op.kind) == LaneKind::compute) {
      busy += graph.duration[task];
    }
  }
  busy /= program.steps;
  const int microbatches = program.microbatches / program.settings.sequence_chunks;
  const bool by_step = updates_by_step(program.settings.weights);
  for (std::size_t s = 0; s < updates.size(); ++s) {
    if (updates[s].count == 0) continue;
    const auto replicas = static_cast<std::int64_t>(program.placement.stage[s].replicas.size());
    const std::int64_t in_a_step = by_step ? replicas : microbatches;
    busy += scaled(updates[s].time, in_a_step, updates[s].count).value_or(updates[s].time);
  }
  return busy;
}

double bubble_of(Time step, int devices, Time busy) {
  // Integer differences: no idle time is 0 and not 1e-16. A step that was rounded down does not
  // make them negative.
  __extension__ using Wide = __int128;
  const Wide idle = std::max<Wide>(0, Wide{step.count()} * devices - busy.count());
  return static_cast<double>(idle) / 1e12 / (devices * to_seconds(step));
}

}  // namespace stageline
