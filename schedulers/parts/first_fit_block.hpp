// A building block (schedulers/parts/unrolled_block.hpp) for any placement whose devices have as
// many stages each: F's and then B's one after another, each in the first slots that its device has
// free modulo the period. An op waits where it would leave gaps that the device's other ops cannot
// fill: B takes two slots, so every gap must have an even length once the F's are in.
#pragma once

#include <vector>

#include "schedulers/parts/unrolled_block.hpp"

namespace stageline {

/// The block of the least chunks held, then the shortest, of those whose backwards begin 0 to a
/// period's slots after the last F. `device` by stage. O(stages · period³).
RepeatedBlock first_fit_block(const std::vector<int>& device, int devices);

}  // namespace stageline
