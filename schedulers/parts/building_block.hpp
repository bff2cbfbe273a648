// Two chunks a device in a V, from building blocks (Qi et al. 2024, "Pipeline Parallelism with
// Controllable Memory", arXiv 2405.15362): the F and I of one micro-batch have fixed slots, the
// next micro-batch's an interval later, W in the slots that are left. How many chunks a device
// holds is how long the block keeps them, over the interval.
//
//      device 0: stages 0 and 2p-1                            F ─┐          ┌─ f   f is the second
//      device r: stages r and 2p-1-r     slots →                 └► F     f ◄┘      chunk's forward
//      device p-1: stages p-1 and p                                  └► F f
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "schedulers/parts/list_schedule.hpp"

namespace stageline {

/// Stage s on device min(s, 2p-1-s). Throws UsageError where that is too many stages.
Placement v_placement(std::string_view schedule, int devices);

/// Slots of F and I of the first micro-batch on a device: first chunk's F, second chunk's F, second
/// chunk's I, first chunk's I. They differ modulo the interval.
using BlockSlots = std::array<int, 4>;

struct BuildingBlock {
  int interval = 6;               // slots a micro-batch: at least F, I and W of two chunks
  std::vector<BlockSlots> slots;  // by device
};
BuildingBlock v_half_block(int devices);
BuildingBlock v_min_block(int devices);

/// All blocks of this interval whose second chunk's F and first chunk's I take one slot from device
/// to device, and whose first chunk's F and second chunk's I take the same number of slots, up to a
/// device, and behind it the same or fewer (section 3.1 there). Fewer kinds where the interval is
/// more than six or the devices are many.
std::vector<BuildingBlock> every_block(int devices, int interval);

/// No order of the block holds fewer chunks on its fullest device when many micro-batches follow
/// one another.
int fewest_stashes(const BuildingBlock& block);

/// F and I of one step in the order of their slots, `early` forwards of the first chunk more than
/// the block has before the second's first (where they fit into the wait for it).
StepLists block_plan(const Problem& problem, const BuildingBlock& block, int early);

/// F, I and W of one step in the order of their slots; each W in the first slot left.
StepLists block_order(const Problem& problem, const BuildingBlock& block);

/// ZB-V's: forwards of the second chunk in turn with the first's until the first I, then F, f, i, I
/// of a micro-batch each in turn.
StepLists zb_v_plan(const Problem& problem);

/// With its forwards before the first I, then one I and one F in turn on every device: the first
/// chunk's I, or the second's F, where the neighbour that gives its input is ahead.
StepLists v_rounds_plan(const Problem& problem);

}  // namespace stageline
