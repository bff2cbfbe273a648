// Refuses programs that cannot be run, and lowers the others.
#include "tools/executor/run/runnable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/stash_readers.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/processes/peers.hpp"
#include "tools/executor/processes/process.hpp"
#include "tools/executor/run/micro_batches.hpp"

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

void check_sharded(const Job& job) {
  const auto& stages = job.program.placement.stage;
  const bool any = std::any_of(stages.begin(), stages.end(),
                               [](const StagePlace& place) { return place.replicas.size() > 1; });
  if (!any) {
    throw UsageError(
        "a sharded optimizer (ZeRO) divides its state among the replicas of a stage, and no stage "
        "of the program has any; replicate the pipeline (--replicas)");
  }
  if (job.imitated) {
    throw UsageError(
        "a sharded optimizer (ZeRO) is for runs that compute; leave --imitate out, or --zero");
  }
  if (job.plan) {
    throw UsageError("a sharded optimizer (ZeRO) is for runs of a program, not for trainings");
  }
  if (job.program.settings.correction != "none") {
    throw UsageError(fmt::format(
        "a sharded optimizer (ZeRO) runs without corrections of old weights (correction: {}), which "
        "read whole steps",
        job.program.settings.correction));
  }
}

// What F leaves for the backward goes to one device, by message or by way of the host, as a stash;
// R runs where F does.
void check_stashes(const Job& job) {
  const Program& program = job.program;
  const auto refuse = [&](Op op, std::string_view what) {
    throw UsageError(fmt::format("{} of stage {}: {}; such a program can only be simulated",
                                 print(op), op.stage, what));
  };
  std::set<std::pair<int, std::uint32_t>> offloaded;  // stage and micro-batch
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      if (op.kind != OpKind::offload) continue;
      offloaded.emplace(op.stage, op.microbatch);
      if (!program.placement.stage[op.stage].stash_homes.empty()) {
        refuse(op, "stashes are copied to the host alone, and here another device holds them");
      }
      if (stash_readers(program.placement.stage[op.stage]) == 1) continue;
      refuse(op, "copies to the host are run where one device reads them, and here several do");
    }
  }
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      if (op.kind != OpKind::recompute) continue;
      if (program.placement.stage[op.stage].apart()) {
        refuse(
            op,
            "a forward is repeated on the device of its F alone, and here F, I and W are on several");
      }
      if (offloaded.count({op.stage, op.microbatch}) > 0) {
        refuse(op, "micro-batches are run either recomputed or offloaded, not both");
      }
    }
  }
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
  if (!job.imitated) check_tokens(job);
  if (!job.program.settings.costs.empty() && !job.imitated && job.training.lengths.empty()) {
    throw UsageError(
        "costs: they do not say how many tokens a micro-batch has, so that such a program can only "
        "be simulated, or run with --imitate; give --lengths in the place of that line");
  }
  if (!job.program.settings.lengths.empty() && job.training.lengths.empty()) {
    throw UsageError(
        "lengths: what a program says of tokens is for traces priced by kernels; give --lengths in "
        "the place of that line");
  }
  check_stashes(job);
  if (job.sharded_optimizer) check_sharded(job);
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
