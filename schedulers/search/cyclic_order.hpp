// The best order found of one round, repeated for every micro-batch: of each device F, I and W of
// its stages once, each for the micro-batch that is `behind` so many rounds. A round takes as long
// as the maximum cycle ratio of the order and the ways between stages: cyclic scheduling with
// lags (Hanen & Munier 1995, "A study of the cyclic scheduling problem on parallel processors",
// doi 10.1016/0166-218X(94)00112-K), of software loops modulo scheduling (Rau 1994,
// doi 10.1145/192724.192731).
#pragma once

#include "schedulers/search/cyclic_round.hpp"
#include "schedulers/search/order_times.hpp"

namespace stageline {

struct CyclicOrder {
  CyclicRound round;
  Time period{};   // of a round, without links that are shared
  Time bound{};    // least_period() of its micro-batches
  StepTimes step;  // of a step of such rounds
};

/// Returns the round with the shortest period a micro-batch; of several, the one with the shortest
/// longest device span of a step. It tries three kinds: every op in the first gap that its device
/// has left modulo a period, from the bound up; the rhythm of list schedules; the best of these
/// with other places for single ops, as long as that helps. For loops it tries the rounds of
/// grouped interleaving, too. Counts bound the work. Throws UsageError when a limit is too small,
/// with the smallest that works. Stages have one device each; I and W are apart.
CyclicOrder cyclic_order(const Problem& problem, const StashLimit& limit);

}  // namespace stageline
