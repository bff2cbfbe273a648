// What a weight rule and a correction keep beside the newest weights.
#pragma once

#include "tools/papers/staleness/cases.hpp"
#include "tools/training/log.hpp"

namespace stageline {

/// Weight tensors kept beside the newest ones, in copies of all weights: the versions that the
/// simulated program holds at most, and what the correction keeps beside each of them in stages
/// that are stale. 0 where nothing is pipelined. Throws what the simulation throws.
double kept_copies(const StudyNet& net, const StudyCase& one, const TrainingLog& log);

}  // namespace stageline
