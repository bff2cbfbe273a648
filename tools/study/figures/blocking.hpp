// Collectives that compute waits for.
#pragma once

#include "tools/study/outcome.hpp"

namespace stageline {

/// The blocking collectives that are part of one op of that kind.
Time blocking_of(const BlockingTimes& times, OpKind kind);

/// The share of all devices' time in a step that blocking collectives take, those of tensor,
/// context and expert parallelism and of divided weights: busy time, and so no part of the bubble.
/// 0 where a step takes no time.
double blocking_fraction(const Outcome& outcome);

/// The same of the compute lane of the busiest device, by group.
GroupShares blocking_of_busiest(const Outcome& outcome);

}  // namespace stageline
