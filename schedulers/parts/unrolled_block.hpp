// Orders from a building block with whole backwards (Qi et al. 2024, "Pipeline Parallelism with
// Controllable Memory", arXiv 2405.15362, where the order of 1F1B-V is made so): F takes one slot
// and B two, those of one micro-batch are fixed, and the next micro-batch's are a period later. A
// block that leaves no slot empty costs nothing per micro-batch where B = 2F; what is idle is at
// both ends of a step.
//
//      period 6     micro-batch 0
//      device 0    |F  fBB       bb       stages 0 (F, bb) and 3 (f, BB)
//      device 1    | Ff     BBbb          stages 1 and 2
//
// At the ends slots are empty, so each op moves to the earliest slots that are free and that its
// inputs allow; a forward only as far as no device then holds more than a limit.
#pragma once

#include <optional>
#include <vector>

#include "sim/op.hpp"

namespace stageline {

/// Slots of the first micro-batch's ops. Those of a device differ modulo the period.
struct RepeatedBlock {
  int period = 0;
  std::vector<int> device;    // by stage
  std::vector<int> forward;   // by stage, the slot of F
  std::vector<int> backward;  // by stage, the first slot of B
};

/// The most chunks that a device holds while blocks follow each other without end.
int chunks_held(const RepeatedBlock& block);

/// By device, F and B of one step. `most`: chunks that a device may hold; without it, as many as
/// the fullest device holds before ops move. Empty where the block alone needs more than `most`.
/// O(slots · devices), and for each op the slots that it moves.
std::optional<std::vector<std::vector<Op>>> unroll(const RepeatedBlock& block, int microbatches,
                                                   std::optional<int> most = std::nullopt);

}  // namespace stageline
