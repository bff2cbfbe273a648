// Stages straight along the devices, in loops or in a V, as users ask for by two knobs.
#pragma once

#include <string>

#include "schedulers/scheduler.hpp"

namespace stageline {

inline constexpr Knob placement_knob = {"placement", "straight|looped|v", "straight",
                                        "one stage a device, or several"};
inline constexpr Knob chunks_knob = {
    "chunks", "auto or a whole number", "auto",
    "stages a device; auto: 1 where placement is straight, else 2"};

/// Throws UsageError where the number of chunks is none or does not suit the placement.
Placement placement_by_knobs(const std::string& schedule, const Knobs& knobs, int devices);

}  // namespace stageline
