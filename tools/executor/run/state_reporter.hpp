// The states of a training that one device contributes to as its run passes them: the weights of
// its stages after an update, and running statistics after a forward.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include "tools/executor/run/device_model.hpp"
#include "tools/executor/run/stage_weights.hpp"

namespace stageline::executor {

class StateReporter {
 public:
  /// All outlive it. Only for runs with a plan; reports nothing without Exchange::states.
  StateReporter(const DeviceModel& here, const Exchange& exchange, const StageWeights& weights,
                const PlannedVersions& planned)
      : here_(here), exchange_(exchange), weights_(weights), planned_(planned) {}

  void after_forward(Op op);
  void after_update(Op op);

 private:
  void report_statistics(Op op);
  StageState state_of(int stage, const Stop& stop) const;
  /// Whether all forwards of a step are done when its update comes, in whatever order they ran.
  bool updates_after_all_forwards() const {
    return here_.job.program.settings.weights == WeightRule::flush;
  }

  const DeviceModel& here_;
  const Exchange& exchange_;
  const StageWeights& weights_;
  const PlannedVersions& planned_;
};

}  // namespace stageline::executor
