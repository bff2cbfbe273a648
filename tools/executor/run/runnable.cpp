// Refuses programs that cannot be run, and lowers the others.
#include "tools/executor/run/runnable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/errors.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/processes/peers.hpp"
#include "tools/executor/processes/process.hpp"

namespace stageline::executor {
namespace {

// A training does not wait for imitated links: what it learns does not depend on them.
TaskGraph with_free_links(TaskGraph graph) {
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    if (lane_of(graph.op[task].kind) == LaneKind::compute) continue;
    graph.duration[task] = Time{};
    graph.path_of[task] = 0;
  }
  return graph;
}

}  // namespace

TaskGraph lowered(const Job& job, const Costs& costs) {
  if (job.program.settings.messages != Messages::async) {
    throw UsageError(fmt::format(
        "messages: {} can be simulated, but only messages: async can be executed; leave the line "
        "out",
        name(job.program.settings.messages)));
  }
  TaskGraph graph = compile(job.program, costs);
  return job.plan ? with_free_links(std::move(graph)) : graph;
}

void check_runnable(const Job& job, const std::vector<Accelerator>& devices, const Peers* peers) {
  if (job.program.settings.sequence_chunks > 1) {
    throw UsageError(
        "sequence_chunks: the models that are run here do not cut sequences (attention would have "
        "to look back over chunks); such a program can only be simulated");
  }
  const std::size_t wanted = job.program.devices.size();
  if (peers != nullptr) {
    if (peers->size() != static_cast<int>(wanted)) {
      throw UsageError(fmt::format("the program runs on {} devices, but there are {} processes",
                                   wanted, peers->size()));
    }
    if (!job.program.settings.weights_transfer) {
      throw UsageError("weights_transfer: off is for one process; between several, weights travel");
    }
    if (job.plan) throw UsageError("training runs in one process, not in several");
  }
  if (devices.size() < wanted) {
    throw UsageError(
        fmt::format("the program runs on {} devices, but there are {}", wanted, devices.size()));
  }
  const auto on_cpu = std::count_if(devices.begin(), devices.begin() + std::ptrdiff_t(wanted),
                                    [](const Accelerator& one) { return one.where.is_cpu(); });
  if (on_cpu < 2 || peers != nullptr || job.imitated) return;
  if (const std::string why = unfit_for_lanes(loaded_blas()); !why.empty()) throw UsageError(why);
}

}  // namespace stageline::executor
