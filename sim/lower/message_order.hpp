// One order of messages for all devices, where messages block. For sim/lower/ alone.
#pragma once

#include "sim/lower/passes.hpp"

namespace stageline {

/// The messages of each run of neighbouring messages in the order of an asynchronous run on unit
/// costs; all messages at their places in that run where the devices would still deadlock.
/// Unchanged where the program deadlocks in any order of messages.
Transferred in_message_order(Program program);

}  // namespace stageline
