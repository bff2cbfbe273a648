// What tensors that change devices take from the ops at their ends.
#pragma once

#include "sim/cluster.hpp"
#include "sim/costs.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// Adds to the times of the stages' ops what the tensors take that they make for other devices, or
/// read from them:
///
///     activations   F of the edge's first stage    F of the second
///     gradients     B or I of the second           B, I or a lone W of the first
///     stash         F                              B, I, W on other devices
///     weights       U                              F, I on other devices, once a micro-batch
///     sums          U of a replica: what its W has added up, and the sums of all others
///
/// What is read comes first, and adds to the op. What is written leaves while the op computes,
/// which ends no sooner than that; sums are added up by nothing but reads and writes. `costs` has
/// the edges, and the stages' bytes. Throws UsageError where a time does not fit.
void add_handover(Costs& costs, const Placement& placement, const Handover& handover);

/// The sums of replicas that are not in the placement, each of whose replicas represents `copies`
/// (itself included): U reads them, too. add_handover() was called. Throws UsageError where a time
/// does not fit.
void add_sums_of_copies(Costs& costs, const Placement& placement, const Handover& handover,
                        int copies);

}  // namespace stageline
