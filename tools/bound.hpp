// The pace of a schedule, derived, beside what nothing can beat.
#pragma once

#include <optional>
#include <string>

#include "sim/steady_state.hpp"
#include "tools/study.hpp"

namespace stageline {

/// What decides the pace of a schedule that repeats, and what it cannot beat.
struct Bound {
  int round = 1;             // micro-batches after which everything repeats
  Period period;             // exact: `time` every `rounds` rounds, and the cycle that decides it
  Time step{};               // the same for the micro-batches of a step, rounded once
  Time load{};               // what the busiest device computes in a step: no order is faster
  std::string busiest;       // that device
  std::optional<Time> path;  // of a flushed step: one micro-batch forward, back, and the update
};
/// From the event graph of a run that is long enough (sim/steady_state.hpp). Nothing when its
/// rounds are not alike. Throws UsageError for a given program, which cannot be made longer.
std::optional<Bound> bound_of(const Case& asked);

}  // namespace stageline
