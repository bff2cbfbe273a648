// The end of each step of a training on the simulated devices.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/study/study.hpp"

namespace stageline::lab {

/// The program of a whole training, as one stream, and its simulated run.
struct TrainingProgram {
  Case asked;       // with `microbatches` and `steps` of the stream
  Program program;  // completed and valid; steps × microbatches micro-batches
  Costs costs;
  Partition partition;
  TaskGraph graph;
  TaskTimes times;
  Timeline timeline;
};

/// `asked` for `steps` optimizer steps: of an asynchronous schedule a stream of that many
/// mini-batches, of a flushed (or double-buffered) one steps of asked.microbatches. steps >= 1.
/// An order that is written for a flush, under a rule that updates after every mini-batch, repeats
/// by its own steps: `steps` is then a multiple of asked.microbatches. Throws as study() does, and
/// UsageError for a given program, above a million ops per device (messages not counted), and where
/// the sum of all durations exceeds 53 days.
TrainingProgram training_program(const Case& asked, std::int64_t steps);

/// Whether the rule updates once per step, and not after every mini-batch.
bool steps_gather(const TrainingProgram& training);

/// Micro-batches per optimizer step of that schedule: asked.microbatches where it accumulates them,
/// else 1.
int microbatches_of_step(const Case& asked);

/// By step: the end of its last update; never falling. (Where micro-batches are distributed over
/// replicas, an update gathers one from each, and its micro-batches' steps end with it.)
std::vector<Time> step_ends_of(const TrainingProgram& training);

/// One step on the fastest device alone: every layer's F, B and U, `microbatches` of F and B,
/// without what the schedule leaves out (the gradient of the model's input).
Time one_device_step(const Case& asked, int microbatches);

/// The same for hybrid training: `pipelined` steps through the pipeline, which then drains, and the
/// others one by one on one device. pipelined <= steps. 0: all on one device. The steps after the
/// switch start at the makespan of the pipelined ones, as in tools/study/hybrid.hpp.
std::vector<Time> hybrid_step_ends(const Case& asked, std::int64_t steps, std::int64_t pipelined);

}  // namespace stageline::lab
