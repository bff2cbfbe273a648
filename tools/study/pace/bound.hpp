// The derived pace of a schedule beside its lower bounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/steady_state.hpp"
#include "tools/study/case.hpp"

namespace stageline {

/// A time that no step of the same work on the same devices can beat.
struct LowerBound {
  std::string name;  // "load", "send", "receive", "copy-out", "copy-in", "link", "path",
                     // "stashes"
  Time step{};
  std::string why;  // in words, with its device or link
};

/// F, I and W of every stage for the same number of micro-batches, again and again.
struct RoundPace {
  int stashes = 0;       // the most that a device holds
  int microbatches = 1;  // of a round
  Time period{};         // of a round, without links that are shared
  Time bound{};          // no rounds of any length that hold no more are faster
};

/// The cycle that decides the pace of a schedule that repeats, and the bounds of that pace.
struct Bound {
  int round = 1;         // micro-batches after which everything repeats
  int microbatches = 1;  // of a step
  int in_step = 0;       // of the program: their chunks, where sequences are cut
  Period period;         // exact: `time` every `rounds` rounds, and the cycle that decides it
  std::string cycle;     // the same in words
  std::vector<std::string> devices;
  Time step{};  // the period for the micro-batches of a step, rounded once
  /// The load of the busiest device first; of lanes and links the busiest where they carry more
  /// than devices compute; of a flushed step the way of one micro-batch forward, back, and the
  /// update, and what a shorter order would need more stashes for.
  std::vector<LowerBound> bounds;

  /// The middle of a flushed step, I and W apart, if it repeats a round for every micro-batch.
  std::optional<RoundPace> middle;

  const LowerBound& largest() const;
  /// How far the step is above the largest bound, as a share of it; 0: optimal.
  double distance() const;
};

/// From the event graph of a run that is long enough (tools/study/pace/pace.hpp). Nothing when its
/// rounds are not alike. Throws UsageError for a given program, which cannot be made longer.
std::optional<Bound> bound_of(const Case& asked);

}  // namespace stageline
