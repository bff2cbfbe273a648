// From layers to stages: the tables that a program is compiled against.
#pragma once

#include "cost_models/recomputation.hpp"
#include "sim/costs.hpp"
#include "sim/model.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// Sums the model's layers by stage, on the devices of the placement: times divided by the relative
/// rates of the device, those of layers bound by memory and of updates by its memory rate, the rest
/// by its rate (each sum rounded once a stage), bytes of each stage edge, memory. A tensor that
/// layers of several stages keep (`input_kept`, `output_kept`) is in the stash of each. Devices'
/// `op_overhead` is part of every op, and what the cluster's `handover` takes of those concerned.
/// Where replicas of one stage are of different speed, the times are those of the fastest device
/// and Costs::pace says the rest; throws UsageError where that is not one factor for both classes,
/// and what by_stage() throws.
///
/// `recomputed` says what R costs and what F keeps for it (StageCosts::boundary); without it R
/// costs a forward and a recomputed stage keeps its input, as with Rebuild::full. In a stage that
/// is rebuilt block by block the stash is what the backward has at a time: all that F keeps and the
/// largest block; what W reads behind a separate I has added up by then, and is `stash_gradient`.
/// R's time is that of all blocks, which in truth alternate with the blocks of the backward.
Costs stage_costs(const Model& model, const Partition& partition, const Placement& placement,
                  const Cluster& cluster, const Recomputation& recomputed = {});

}  // namespace stageline
