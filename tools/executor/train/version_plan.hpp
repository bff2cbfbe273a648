// Which version of its weights every pass of a training reads, as a table. The pipelined and the
// delayed run follow the same one, so the result does not depend on which device was quicker.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/analysis/versions.hpp"
#include "sim/program.hpp"

namespace stageline::executor {

/// The versions of one stage. Tables are by micro-batch, from the training's first one on; a
/// version is numbered by the stage's updates up to it.
struct StageVersionPlan {
  int group = 1;     // micro-batches that one update gathers
  int replicas = 1;  // that take turns with the micro-batches
  int delay = 0;     // updates behind which a steady forward reads: the degree of staleness
  std::vector<std::uint32_t> forward;
  std::vector<std::vector<std::uint32_t>> input_grad;  // by part; none: W (or B) does all
  std::vector<std::uint32_t> weight_grad;
  /// W does not follow I on its device: it runs a whole backward through the stage's layers.
  std::vector<bool> whole_backward;
  bool fused = false;                  // the stage has B, which is I and W at once
  std::vector<bool> on_weight_device;  // by part of I: whether W is computed there, too
  /// The oldest version that this micro-batch or a later one reads.
  std::vector<std::uint32_t> oldest;
};

/// The versions of all stages.
struct VersionPlan {
  int microbatches = 1;  // of a step
  bool by_step = false;  // an update gathers a step's micro-batches, by their mean
  std::vector<StageVersionPlan> stage;

  std::uint32_t total() const { return static_cast<std::uint32_t>(stage[0].forward.size()); }
  /// Updates that the stage has seen after so many whole steps.
  std::uint32_t version_after(std::size_t s, std::int64_t steps) const;
  /// Steps after which every stage has made whole updates, and every replica has had as many turns.
  std::int64_t round() const;
};

/// From the versions that a run of the program read, simulated or real.
VersionPlan version_plan(const Program& program, const std::vector<VersionRead>& reads);

/// Plain training, one step after the other, of so many stages: every pass reads the newest
/// version.
VersionPlan plain_version_plan(int stages, int microbatches, std::int64_t steps);

}  // namespace stageline::executor
