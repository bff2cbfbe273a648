// Data-parallel replicas of a whole pipeline, as one program.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/lower/passes.hpp"
#include "sim/problem.hpp"
#include "sim/varied_costs.hpp"

namespace stageline {
namespace {

// Refuses what the program text cannot say of a replicated stage.
void check_replicable(const Program& program, int replicas) {
  for (int s = 0; s < program.stages(); ++s) {
    const StagePlace& place = nth(program.placement.stage, s);
    if (place.apart()) {
      throw UsageError(
          fmt::format("the pipeline cannot have {} replicas: stage {} has F, I and W on different "
                      "devices, and a replica has all three on one device",
                      replicas, s));
    }
    const std::size_t copies = place.replicas.size() * as_size(replicas);
    if (copies > max_parts) {
      throw UsageError(
          fmt::format("stage {} would live on {} × {} = {} devices, and a stage has at most {}", s,
                      place.replicas.size(), replicas, copies, max_parts));
    }
    const std::vector<int>& delay = program.settings.delay;
    if (!delay.empty() && nth(delay, s) >= 0) {
      throw UsageError(
          fmt::format("the pipeline cannot have {} replicas: F of stage {} waits for the update of "
                      "{} micro-batches before (delays), and {} replicas have one update for {} "
                      "micro-batches",
                      replicas, s, nth(delay, s) + 1, replicas, replicas));
    }
  }
  if (program.settings.clock == Clock::lockstep) {
    throw UsageError(
        fmt::format("the pipeline cannot have {} replicas: in lockstep (clock: lockstep) a cycle "
                    "has one micro-batch of each stage, not {}",
                    replicas, replicas));
  }
  if (program.settings.sequence_chunks > 1) {
    throw UsageError(
        fmt::format("the pipeline cannot have {} replicas: the {} chunks of a sequence "
                    "(sequence_chunks) are consecutive micro-batches on one device",
                    replicas, program.settings.sequence_chunks));
  }
  const double forwards =
      static_cast<double>(program.total_microbatches()) * replicas * std::max(program.stages(), 1);
  if (forwards > most_forwards) {
    refuse_forwards(fmt::format("{} replicas × {} micro-batches × {} stages", replicas,
                                program.total_microbatches(), program.stages()),
                    forwards, "micro-batches, steps or replicas");
  }
}

std::vector<std::string> device_names_of(const Program& program, int replicas,
                                         std::vector<std::string> given) {
  const std::size_t wanted = program.devices.size() * as_size(replicas);
  if (!given.empty()) {
    if (given.size() == wanted) return given;
    throw UsageError(fmt::format("{} replicas of {} devices need {} names, and {} are given",
                                 replicas, program.devices.size(), wanted, given.size()));
  }
  if (replicas == 1) return program.devices;
  std::vector<std::string> names;
  for (int r = 0; r < replicas; ++r) {
    for (const std::string& device : program.devices) {
      names.push_back(fmt::format("r{}.{}", r, device));
    }
  }
  return names;
}

// The op of replica `replica`. An update keeps its number: it has as many micro-batches of every
// replica as it had of the one.
Op op_of_replica(Op op, std::uint32_t replica, std::uint32_t replicas) {
  if (counts_microbatches(op.kind)) {
    op.microbatch = op.microbatch * replicas + replica;
  } else {
    op.part = static_cast<std::uint8_t>((op.part * replicas + replica) & max_parts);
  }
  return op;
}

}  // namespace

Program replicated(const Program& one_pipeline, int replicas,
                   std::vector<std::string> device_names) {
  if (replicas < 1) {
    throw UsageError(fmt::format("a pipeline has at least one replica, not {}", replicas));
  }
  if (replicas > 1) check_replicable(one_pipeline, replicas);
  Program program = one_pipeline;
  program.devices = device_names_of(one_pipeline, replicas, std::move(device_names));
  if (replicas == 1) return program;
  program.microbatches *= replicas;
  program.settings.costs = side_by_side(one_pipeline.settings.costs, replicas);
  program.settings.lengths = side_by_side(one_pipeline.settings.lengths, replicas);
  for (int& window : program.settings.window) {
    // One that is longer than the program has no effect.
    window = std::min(window, static_cast<int>(one_pipeline.total_microbatches())) * replicas;
  }
  const auto devices = static_cast<int>(one_pipeline.devices.size());
  for (StagePlace& place : program.placement.stage) {
    for (std::vector<int>* const homes : {&place.replicas, &place.stash_homes}) {
      const std::vector<int> of_one = std::exchange(*homes, {});
      for (const int device : of_one) {
        for (int r = 0; r < replicas; ++r) homes->push_back(r * devices + device);
      }
    }
  }
  program.ops.clear();
  for (int r = 0; r < replicas; ++r) {
    for (const std::vector<Op>& list : one_pipeline.ops) {
      std::vector<Op>& copy = program.ops.emplace_back();
      copy.reserve(list.size());
      for (const Op op : list) {
        copy.push_back(
            op_of_replica(op, static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(replicas)));
      }
    }
  }
  return program;
}

}  // namespace stageline
