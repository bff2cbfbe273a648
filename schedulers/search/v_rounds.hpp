// Orders of two chunks a device in a V, with W where it is decided round by round: in each round
// every device does one I and one F, and a W before it where the device would wait for as long as
// that takes, or where it would become the one that has idled longest.
//
//      gpu0   F F F f … | i W F | i W f | I F | …      a round: I, perhaps behind a W, then F
//
// After zbv.py of https://github.com/sail-sg/zero-bubble-pipeline-parallelism (read 2026-11-30),
// for Qi et al. 2024, arXiv 2405.15362; there all devices take equally long.
#pragma once

#include <vector>

#include "schedulers/parts/list_schedule.hpp"

namespace stageline {

/// Those with a W before F, before I of the first chunk, before both or neither, each as the
/// devices' idle time of the run before allows. Empty where the limit is too small for these
/// rounds, or micro-batches too few. O(ops) each, at most 64.
std::vector<StepLists> v_round_orders(const Problem& problem, const StashLimit& limit);

}  // namespace stageline
