// A real run as an Outcome: the simulator's answer for a program, with measured values in the place
// of predicted ones.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <vector>

#include "tools/executor/run/execute.hpp"
#include "tools/study/study.hpp"

namespace stageline::executor {

/// The predicted outcome's program, cut and names; graph, times, timeline, idle time, versions and
/// step time as measured. Peaks are those of `held`, where it is not empty; there is no critical
/// path, and throughput and the like follow the measured step.
Outcome measured_outcome(const Outcome& predicted, const Execution& run,
                         const std::vector<HeldBytes>& held);

}  // namespace stageline::executor
