// How many steps of an asynchronous schedule show the most that its devices ever hold.
#pragma once

#include "sim/costs.hpp"
#include "tools/study/run/run.hpp"

namespace stageline {

struct Stillness {
  int steps = 0;
  /// What is held grows with the length of the run: a link or a device has more to do than its
  /// share of the pace.
  bool grows = false;
};

/// The steps, from `least` on, that reach the peaks of memory, versions and staleness of a run of
/// `most` steps, which a pace is read off anyway; where roles of a stage are on several devices and
/// that is small, of up to four times as many. Where these are all its steps, runs of half and of
/// twice as many say whether it grows; then it is `most` steps. `least` where such runs are too
/// long to be added up.
Stillness stillness_of(Runs& runs, const Costs& costs, int least, int most);

}  // namespace stageline
