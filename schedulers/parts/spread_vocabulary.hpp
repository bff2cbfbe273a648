// 1F1B with the vocabulary spread over all devices (Yeung et al. 2024, "Balancing Pipeline
// Parallelism with Vocabulary Parallelism", arXiv 2411.05288). Every device has, beside its stage
// of the pipeline, a share of the head: p branches behind the last stage. A share's pass S makes
// its part of the logits with their maximum and sum; its pass T the gradients that need those of
// all.
//
//      stage 0 ► 1 ► … ► p-1 ─┬► share p   ─┐
//        F(m)              F  ├► share p+1 ─┼► loss 2p (two barriers)       share p+d is on
//                             └► … 2p-1    ─┘                              device d, loss on p-1
//
//      one barrier (their algorithm 2)      S is F and I of a share, T its W: the input gradient
//                                           is made before the sum is known, and corrected by it.
//                                           B of the last stage waits for all S.
//      two barriers (their algorithm 1)     S is F of a share, T its B, which waits for F and B of
//                                           the loss, and so for all S. B of the last stage waits
//                                           for all T.
//
// Each barrier is given one micro-batch's period, in which the collective is hidden and each device
// chooses where S stands: device d holds p-d+1 or p-d+2 micro-batches instead of p-d.
#pragma once

#include <cstdint>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/placement.hpp"
#include "sim/problem.hpp"
#include "sim/program.hpp"

namespace stageline {

inline constexpr Knob vocabulary_knob = {
    "vocabulary", "whole|one_barrier|two_barriers", "whole",
    "embedding and head on the first and last device, or a share of both on every device",
    "the places of S and T between F and B are rebuilt from a period for each barrier"};

enum class VocabularyBarriers : std::uint8_t { whole, one, two };
/// `whole` where the schedule has no such knob.
VocabularyBarriers vocabulary_barriers(const Knobs& knobs);

/// Stages of a pipeline of p devices, the shares of the head and, with two barriers, the loss.
/// Throws UsageError where that is too many stages.
Placement spread_placement(int devices, VocabularyBarriers barriers);

/// The edges among them, sorted.
std::vector<StageEdge> spread_edges(int devices, VocabularyBarriers barriers);

/// Fills the blank program of such a problem. Throws UsageError where its edges are others.
/// O(ops · log ops).
Program spread_order(const Problem& problem, Program program, bool recompute);

}  // namespace stageline
