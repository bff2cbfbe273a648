// Grouped interleaving (Wan et al. 2025, PipeOffload, arXiv 2503.01328): the order of interleaved
// 1F1B with groups that may be smaller than the number of devices, for half of its activations. A
// slot is the time of an op. A device repeats a block of 3·g·chunks slots, for a group of g
// micro-batches; one micro-batch's ops are 3 slots behind the one's before it, a chunk of a group
// 3·k·g slots behind the chunk before, so that k groups are in flight; F goes on a slot a device, I
// comes back in two, and W is right behind its I. Where k and the number of chunks have a divisor
// d above 1, a chunk would meet the one chunks/d before it: there a group's slots are left out.
//
//      group 1, k 2       F0    F1    F2 f0 F3 f1      …         f: the second chunk's forward
//      device 1 of 4       F0    F1    F2 f0 F3 f1    …  i0 w0 F i1 w1
//
// The rule is that of GroupBuildingBlockScheduler in sail-sg's zero-bubble-pipeline-parallelism
// (megatron/core/pipeline_parallel/zerobubble/scheduler/group_interleaved_1f1b.py, commit 39f2c186,
// 2025-05-07), where k·g is at least half the number of devices. I then may come back behind its
// slot; the order is the same.
#pragma once

#include "schedulers/parts/list_schedule.hpp"

namespace stageline {

struct Grouping {
  int group = 1;      // micro-batches
  int in_flight = 1;  // groups between a chunk and the next
};

/// The authors' k for groups of that size: the fewest that half the devices or more are in flight.
Grouping grouping_of(int devices, int group);

/// One step, stage k on device k mod devices; with B in place of I and W if not `split`. The last
/// group may be smaller. Both numbers are at least 1, and their product at least half the devices.
StepLists grouped_order(const Problem& problem, Grouping grouping, bool split);

}  // namespace stageline
