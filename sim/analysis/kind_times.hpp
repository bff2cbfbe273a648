// How long the ops of a timeline take, by stage and kind.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "sim/timeline.hpp"

namespace stageline {

/// Time in which the compute lane of each device does something.
std::vector<Time> busy_of(const Timeline& timeline);

/// What the first op of an overlapped pair takes of the `whole` time. `first`, `second`: what such
/// ops take outside of pairs, where that is known. The second has the rest, and where both are
/// known and take longer together, both have less in proportion. Where neither is known, a forward
/// (`forward_first`) has a third, another op two.
Time first_of_pair(Time whole, std::optional<Time> first, std::optional<Time> second,
                   bool forward_first);

/// Durations of the compute ops, by stage and kind: of ops whose own time is known. Where a stage
/// has no such op of a kind (`shared`), of those that are `estimated`, and of those in overlapped
/// pairs that are one span in the timeline, divided by first_of_pair.
struct KindTimes {
  int stage = 0;
  OpKind kind = OpKind::forward;
  std::vector<Time> times;
  bool shared = false;
};
std::vector<KindTimes> kind_times(const Timeline& timeline, const std::set<Op>& estimated = {});

}  // namespace stageline
