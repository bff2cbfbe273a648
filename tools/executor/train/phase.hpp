// The phases of a training: steps through the pipeline, by the delays of a program, then plain
// steps on one device.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/versions.hpp"
#include "tools/executor/train/trainer.hpp"
#include "tools/executor/train/version_plan.hpp"
#include "tools/lab/training/times.hpp"

namespace stageline::executor {

struct Phase {
  Partition partition;
  Placement placement;
  WeightRule weights = WeightRule::flush;
  std::string correction = "none";
  VersionPlan plan;
  std::int64_t end = 0;                 // step
  std::vector<StageVersions> versions;  // by stage
};

/// The request's pipelined steps. Throws UsageError for a correction or a weight rule that the
/// schedule cannot train with.
Phase pipelined_phase(const TrainingRequest& request);
/// All steps of the request as plain training; `before`: the phase whose stages it continues with,
/// or null.
Phase plain_phase(const TrainingRequest& request, const Phase* before, int microbatches);

/// The program of so many steps, with the request's corrections. Throws as pipelined_phase does.
lab::TrainingProgram corrected_program(const TrainingRequest& request, std::int64_t steps);

/// 64 bits of the whole plan (FNV-1a): where costs or links change it, the training learns
/// something else.
std::string digest(const VersionPlan& plan);

/// The state that a plain phase starts from: the weights that all stages have when the pipeline has
/// drained.
TrainingState drained(TrainingState state);

}  // namespace stageline::executor
