// Resolves a case into placement, cut, costs and program.
#pragma once

#include <cstdint>

#include "schedulers/partition/partitioner.hpp"
#include "schedulers/scheduler.hpp"
#include "tools/study/case.hpp"

namespace stageline {

/// Placement and cut of a schedule: the partitioner may choose the replicas of a schedule that has
/// them.
struct Layout {
  Placement placement;  // of all pipelines that are simulated
  Placement pipeline;   // of one of them
  PartitionPlan plan;
  Knobs knobs;
  std::vector<bool> one_layer;  // by stage; empty where the schedule does not ask
  int sequence_chunks = 1;      // micro-batches of the program for one of what is asked
};

/// `sequence_chunks` is that of the knob of this name, or of the given program.
/// Throws UsageError when the partition and the schedule want different numbers of stages, when
/// flushed weights are asked of a schedule that does not flush, and where the samples are images or
/// so many chunks do not divide the sequences.
Layout lay_out(const Case& asked);

/// The same for what is to be simulated whole: refuses as well what cannot be added up
/// (tools/study/run/overflow_guard.hpp), chunks of which each would exchange weights or gradients,
/// and a cut that the model does not allow.
Layout checked_layout(const Case& asked);

/// The model whose gradients are exchanged, of a case with degrees: as without ZeRO, and as the
/// devices of the placement hold it. What blocks an op is that of a chunk, where sequences are cut
/// and it is priced.
Model exchanged_model(const Case& asked, const Partition& partition, const Placement& placement);

/// On the fastest device alone (cost_models/serial.hpp); of a case with degrees, on the devices of
/// one pipeline rank, which divide among them what tensor and context parallelism do, and with ZeRO
/// the optimizer's step.
Time time_alone(const Case& asked, const Program& program, const Partition& partition,
                std::int64_t microbatches, std::int64_t updates);

/// In a step of the program: chunks, where sequences are cut, of all pipelines that are simulated.
int microbatches_of(const Case& asked, const Layout& layout);

/// The costs of the stages, for one micro-batch of the program (a chunk, where sequences are cut).
Costs costs_of(const Case& asked, const Layout& layout);

/// What the scheduler of the case is asked, of one of the pipelines that are simulated.
Problem problem_of(const Case& asked, const Layout& layout, const Costs& costs, int steps);

/// Whether the given program is one flushed step that can be repeated as it is: replicas take turns
/// at micro-batches, so where these do not divide evenly the next step begins on another replica.
bool repeats(const Case& asked);

/// Throws UsageError where a schedule of so many steps has more forwards than are simulated at a
/// time, or its times or bytes may leave 64 bits (sim/sums.hpp).
void check_length(const Case& asked, const Layout& layout, const Costs& costs, int steps);

/// As the scheduler writes it, with the recomputation and the copies to the host that are asked
/// for, before any other pass; the given program where there is one, `steps` times where it
/// repeats. Throws UsageError where its times or bytes may leave 64 bits, and what the scheduler
/// throws.
Program program_of(const Case& asked, const Layout& layout, const Costs& costs, int steps);

}  // namespace stageline
