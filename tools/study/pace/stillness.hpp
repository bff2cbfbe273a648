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

/// Returns how many steps, at least `least`, reach the peaks of memory, versions and staleness of a
/// run of `most` steps. (A pace is read off that run anyway. With few tasks, and roles of a stage
/// on several devices, the run has up to four times as many steps.) If the peaks take the whole
/// run, runs of half and of twice its steps decide whether they grow; if so, `steps` is `most`. It
/// is `least` if such runs are too long to be added up.
Stillness stillness_of(Runs& runs, const Costs& costs, int least, int most);

}  // namespace stageline
