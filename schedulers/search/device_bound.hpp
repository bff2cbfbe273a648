// What no order of stages that follow one another can beat, with any number of them on a device: of
// each device
//
//   its work, and its idle time before its first I and behind its last F under the limit
//   its ops as a machine of its own that may interrupt them, each no sooner than the longest way to
//   it and with the longest way behind it (Jackson's preemptive schedule, Carlier 1982,
//   doi 10.1016/S0377-2217(82)80007-6)
//   the time for which its stashes are held, all together, of as many as it may hold at a time
#pragma once

#include <optional>

#include "schedulers/search/stash_bound.hpp"

namespace stageline {

/// Nothing where micro-batches differ, stages do not follow one another, or a B is shorter than I
/// and W. O(ops · log(ops of a device)).
std::optional<StashBounds> device_bounds(const Problem& problem, const StashLimit& limit);

}  // namespace stageline
