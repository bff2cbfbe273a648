// How long the slices of a sequence are, of schedules that cut sequences.
#pragma once

#include "schedulers/scheduler.hpp"

namespace stageline {

/// Read where cases are made: a schedule's order is the same for slices of any lengths.
inline constexpr Knob slices_knob{
    "slices", "even, balanced, tokens such as 8192-4096-4096 or a file", "even",
    "tokens of each piece: equal, or such that each takes as long (later ones, which attend to more, "
    "are shorter), or as given"};

}  // namespace stageline
