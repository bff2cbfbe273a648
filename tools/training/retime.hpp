// The same training on other devices: its steps simulated again, its losses and accuracies kept.
#pragma once

#include <string>
#include <vector>

#include "tools/study/study.hpp"
#include "tools/training/log.hpp"

namespace stageline {

/// What the log was trained as, on this trace and cluster: schedule, weight rule, micro-batches,
/// and the very cut, by layers. `model` is at the log's micro-batch size, `cluster` holds exactly
/// the log's devices. Throws UsageError where the trace has another number of layers than was
/// trained, or the schedule comes to another cut there.
Case case_of(const TrainingLog& log, const Model& model, const Cluster& cluster);

/// By step of the whole training, when it ends (tools/training/times.hpp).
std::vector<Time> ends_of(const Case& asked, const TrainingLog& log);

/// Where staleness depends on the times and would be another there than what was trained, a
/// sentence that says so; else empty. Simulates the begin of the training.
std::string staleness_note(const Case& asked, const TrainingLog& log);

/// Gives the log's steps and evaluations these times; as many as log.steps at least.
void set_times(TrainingLog& log, const std::vector<Time>& ends);

}  // namespace stageline
