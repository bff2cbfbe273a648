// Figures of a whole training log.
#include "tools/lab/training/log.hpp"

namespace stageline::lab {

double TrainingLog::stale_share() const {
  if (settings.pipelined == 0) return 0;
  double stale = 0;
  double all = 0;
  for (const LoggedStage& stage : stages) {
    const auto weights = static_cast<double>(stage.weights);
    all += weights;
    if (stage.staleness_max > 0) stale += weights;
  }
  return all > 0 ? stale / all : 0;
}

}  // namespace stageline::lab
