// The knob by which 1F1B hides the exchange of experts: forwards and backwards run as overlapped
// pairs, as Megatron-Core's overlap_moe_expert_parallel_comm has them.
#pragma once

#include "schedulers/scheduler.hpp"

namespace stageline {

inline constexpr Knob expert_overlap_knob = {
    "overlap", "none|experts", "none",
    "experts: every forward runs with a backward as a pair, which hides their all-to-all"};

inline bool overlaps_experts(const Knobs& knobs) { return knobs.at("overlap") == "experts"; }

}  // namespace stageline
