// The memory that a weight rule and a correction need beside the newest weights.
#pragma once

#include "tools/lab/papers/staleness/cases.hpp"
#include "tools/lab/training/log.hpp"

namespace stageline::lab {

/// Weight tensors kept beside the newest ones, in copies of all weights: the maximum of versions
/// that the simulated program holds, and the tensors that the correction keeps beside each of them
/// in stale stages. 0 where nothing is pipelined. Throws as the simulation does.
double kept_copies(const StudyNet& net, const StudyCase& one, const TrainingLog& log);

}  // namespace stageline::lab
