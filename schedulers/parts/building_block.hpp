// Two chunks a device in a V, from building blocks (Qi et al. 2024, "Pipeline Parallelism with
// Controllable Memory", arXiv 2405.15362): the F and I of one micro-batch have fixed slots, the
// next micro-batch's six slots later, W in the slots that are left. How many chunks a device holds
// is how long the block keeps them, over six.
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
/// chunk's I, first chunk's I. They differ modulo 6.
using BlockSlots = std::array<int, 4>;
BlockSlots v_half_slots(int devices, int device);
BlockSlots v_min_slots(int devices, int device);

/// By device, F and I of one step in the order of their slots, `early` forwards of the first chunk
/// more than the block has before the second's first (where they fit into the wait for it).
std::vector<std::vector<Op>> block_plan(const Problem& problem,
                                        BlockSlots (*slots)(int devices, int device), int early);

/// ZB-V's: forwards of the second chunk in turn with the first's until the first I, then F, f, i, I
/// of a micro-batch each in turn.
std::vector<std::vector<Op>> zb_v_plan(const Problem& problem);

/// The best step, by span and then makespan, of the plans under the limit: each as it is and with
/// devices that do what is ready once their first chunk's forwards are over, W in any gap or in
/// those it fits.
std::vector<std::vector<Op>> best_of_plans(const Problem& problem,
                                           const std::vector<std::vector<std::vector<Op>>>& plans,
                                           const StashLimit& limit);

}  // namespace stageline
