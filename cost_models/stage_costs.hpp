// From layers to stages: the tables that a program is compiled against.
#pragma once

#include "sim/costs.hpp"
#include "sim/model.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// Sums the model's layers by stage, on the devices of the placement: times divided by the relative
/// rate of the device (rounded once a stage), bytes of each stage edge, memory. Recompute costs a
/// forward; a recomputed stage keeps its input. A tensor that layers of
/// several stages keep (`input_kept`, `output_kept`) is in the stash of each. Devices'
/// `op_overhead` is part of every op. Throws UsageError when replicas of one stage are of different
/// speed.
Costs stage_costs(const Model& model, const Partition& partition, const Placement& placement,
                  const Cluster& cluster);

}  // namespace stageline
