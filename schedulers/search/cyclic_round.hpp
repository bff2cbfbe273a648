// A round that repeats: of each device F, I and W of its stages for so many micro-batches, mostly
// one, each op for micro-batches that are `behind` so many rounds.
//
//      gpu0   F(k) I(k-3) W(k-3)      k: the round
//      gpu1   F(k-1) I(k-2) W(k-2)    its F is a round behind that of gpu0
#pragma once

#include <optional>
#include <vector>

#include "schedulers/parts/list_schedule.hpp"

namespace stageline {

struct CyclicOp {
  OpKind kind = OpKind::forward;
  int stage = 0;
  int number = 0;  // below `each` of its round
  int behind = 0;  // round k does it for micro-batch each · (k - behind) + number
};

struct CyclicRound {
  int each = 1;                               // micro-batches
  std::vector<std::vector<CyclicOp>> device;  // in the order of their starts
};

/// The rounds in which any of so many micro-batches takes part, by device.
StepLists unrolled(const CyclicRound& round, int microbatches);

/// The round of so many micro-batches in the middle of a step with I and W apart; nothing where it
/// does not have each op of the stages once for each.
std::optional<CyclicRound> middle_round(const StepLists& lists, int stages, int each);

/// Whether devices hold no more while such rounds follow each other without end.
bool keeps_limit(const Problem& problem, const StashLimit& limit, const CyclicRound& round);

/// No order of rounds, of any number of micro-batches each, takes less time a micro-batch under the
/// limit: a device's work or messages, or the time for which its stashes are held at least, of as
/// many as it may hold. Stages follow the numbers of those that they read, and have one device
/// each.
Time least_period(const Problem& problem, const StashLimit& limit);

}  // namespace stageline
