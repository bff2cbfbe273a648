// Simulates a logged training again on other devices; its losses and accuracies are kept.
#pragma once

#include <string>
#include <vector>

#include "tools/lab/training/log.hpp"
#include "tools/study/study.hpp"

namespace stageline::lab {

/// The case of the log's training on this trace and cluster: schedule, weight rule, micro-batches,
/// and exactly its cut, by layers. `model` is at the log's micro-batch size, `cluster` has exactly
/// the log's devices. Throws UsageError where the trace has another number of layers than the
/// trained model, or the schedule yields another cut there.
Case case_of(const TrainingLog& log, const Model& model, const Cluster& cluster);

/// By step of the whole training: its end (tools/lab/training/times.hpp).
std::vector<Time> ends_of(const Case& asked, const TrainingLog& log);

/// A sentence where staleness depends on the times and would differ there from the trained one;
/// else empty. Simulates the beginning of the training.
std::string staleness_note(const Case& asked, const TrainingLog& log);

/// Sets the times of the log's steps and evaluations; needs at least log.steps of them.
void set_times(TrainingLog& log, const std::vector<Time>& ends);

}  // namespace stageline::lab
