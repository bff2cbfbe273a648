// Activations of some blocks wait in the host's memory from forward to backward, as Transformer
// Engine copies them for Megatron-Core (--cpu-offloading-num-layers).
#pragma once

#include <vector>

#include "sim/cluster.hpp"
#include "sim/costs.hpp"
#include "sim/model.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// The copies of one stage, for a micro-batch.
struct BlockCopies {
  int copied = 0;          // the first so many blocks of the stage
  int blocks = 0;          // that it has
  Bytes bytes{};           // that wait in the host's memory
  Bytes largest{};         // of one block
  Time copying{};          // there; 0: over no link
  Time forward_wait{};     // what F waits for copies to the host
  Time input_grad_wait{};  // what a separate I waits for copies back
  Time backward_wait{};    // what B does
  friend bool operator==(const BlockCopies&, const BlockCopies&) = default;
};

/// By stage, where the first `copied` blocks of each leave. Copies are spread over all blocks of
/// the stage as Transformer Engine spreads them (AsyncDoubleBufferGroupOffloadHandler of
/// transformer_engine/pytorch/cpu_offload.py, version 2, read 2026-11-29): of n copied blocks of L,
/// copy k starts when copy k-1 has ended and runs beside the next L/n blocks (the first L mod n
/// copies beside one more), at whose end compute waits for it. On the way back the same blocks run
/// beside it. So compute and copies take the longer of both, window by window. Collectives of the
/// blocks are not counted beside copies. `network`: between the devices of the placement and their
/// hosts; over no link copies are free.
///
/// Throws UsageError where a stage has blocks, and no more than `copied`: the last one's copy would
/// have nothing to run beside, and Megatron-Core refuses it; and where roles of a stage are apart.
std::vector<BlockCopies> block_copies(const Model& model, const Partition& partition,
                                      const Placement& placement, const Cluster& cluster,
                                      const Network& network, int copied);

/// stage_costs() of a model whose blocks are copied so, without what is waited for: F leaves
/// nothing of them on the device, and each block's op holds, beside its own activations, the
/// largest that is on its way. What W reads behind a separate I has come back for I. Nothing is
/// recomputed. Throws as stage_costs().
Costs stage_costs_with_copies(const Model& model, const Partition& partition,
                              const Placement& placement, const Cluster& cluster, int copied);

/// Adds to the times of ops what they wait for copies; `costs` has the network.
void add_copy_waits(Costs& costs, const Model& model, const Partition& partition,
                    const Placement& placement, const Cluster& cluster, int copied);

}  // namespace stageline
