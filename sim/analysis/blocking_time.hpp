// Which part of an op is blocking collectives.
#pragma once

#include "sim/base/units.hpp"
#include "sim/costs.hpp"
#include "sim/op.hpp"

namespace stageline {

/// The blocking time of an op of that kind; 0 for messages and copies.
Time blocking_time(const BlockingTimes& times, OpKind kind);

}  // namespace stageline
