// What a limit of stashes costs a straight pipeline with I and W apart, whatever the order. rt is
// the time from the start of a stage's F to the first moment at which that micro-batch's I can
// start there.
//
//   before its first I, for rt, a device can run no more than `limit` forwards
//   between its last F and its last I, for rt - F, only what the other stashes held give it
//   F k+limit waits for W k, which is rt behind F k
#pragma once

#include <optional>

#include "schedulers/parts/order_climb.hpp"
#include "schedulers/parts/stash_bank.hpp"

namespace stageline {

/// No order has a shorter longest device span, and none a smaller makespan. Nothing where this is
/// not known: several stages a device, stages that do not follow one another, a B that is shorter
/// than I and W, or a limit in bytes. O(stages²).
std::optional<StepTimes> stash_bound(const Problem& problem, const StashLimit& limit);

}  // namespace stageline
