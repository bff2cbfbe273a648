// How many forwards each device of a straight pipeline does before its first I: what tells ZB-H1
// from ZB-H2, and the first thing a search for better orders varies.
#pragma once

#include <vector>

#include "schedulers/parts/stash_bank.hpp"
#include "sim/problem.hpp"

namespace stageline {

/// By device, that first I's own forward included; at least 1.
using WarmUp = std::vector<int>;

/// ZB-H1's p-r on device r of a chain, with factor 2 ZB-H2's 2(p-r)-1; else of the stages behind.
WarmUp by_distance(const Problem& problem, int factor);

/// As many as a device has time for before its first gradient can arrive; `over`: one more rather
/// than a bubble. No more than the limit and the device behind allow.
WarmUp until_first_backward(const Problem& problem, const StashLimit& limit, bool over);

/// All of these under the limit, as they are and with at least one fewer from device to device,
/// each once.
std::vector<WarmUp> warm_ups_for(const Problem& problem, const StashLimit& limit);

/// By device, one step: F and I in turn behind the warm-up, W as late as the stashes of device 0's
/// warm-up allow everywhere, which makes ZB-H1 and ZB-H2 of the two distances. `whole`: B instead,
/// which makes 1F1B of the first.
std::vector<std::vector<Op>> in_turn(const Problem& problem, const WarmUp& warm_up, bool whole);

}  // namespace stageline
