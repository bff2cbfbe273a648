// What a limit of stashes costs a straight pipeline with I and W apart, whatever the order. rt is
// the time from the start of a stage's F to the first moment at which that micro-batch's I can
// start there.
//
//   before its first I, for rt, a device can run no more than `limit` forwards
//   between its last F and its last I, for rt - F, only what the other stashes held give it
//   F k+limit waits for W k, which is rt behind F k
//
// In bytes the limit is three numbers: of whole stashes, of what is left of them behind I, and of
// the smaller of both.
#pragma once

#include <optional>
#include <string>

#include "schedulers/parts/stash_bank.hpp"
#include "schedulers/search/order_climb.hpp"

namespace stageline {

/// A time that no order under the limit can beat, and what decides it.
struct StashBound {
  enum class Why : std::uint8_t {
    own,      // a device's work, and its idle time before the first I and behind the last F
    tail,     // the same until the last I, whose gradient still goes back to `seen_from`
    chain,    // micro-batches that wait for the stash of earlier ones
    machine,  // a device's work, between what must come before and what must follow
    area,     // the time for which all its stashes are held, of as many as there may be
  };
  Time value{};
  Why why = Why::own;
  std::size_t device = 0;     // that is the bottleneck
  std::size_t seen_from = 0;  // whose span it is
  Time idle{};                // part of `own`
};
struct StashBounds {
  StashBound span;
  StashBound makespan;
};

/// No order has a shorter longest device span, and none a smaller makespan. `updates`: with each
/// device's update behind its last W. Nothing where this is not known: micro-batches that
/// differ, several stages a device, stages that do not follow one another, or a B that is shorter
/// than I and W. O(stages² + stages · micro-batches).
std::optional<StashBounds> stash_bounds(const Problem& problem, const StashLimit& limit,
                                        bool updates = false);

/// Their values alone.
std::optional<StepTimes> stash_bound(const Problem& problem, const StashLimit& limit);

/// In words: "gpu0 computes, waits for the first gradient, …".
std::string in_words(const StashBound& bound, const std::vector<std::string>& devices);

}  // namespace stageline
