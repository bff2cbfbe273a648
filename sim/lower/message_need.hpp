// Whether complete() writes messages into a program, which is all that it asks of costs.
#pragma once

#include "sim/cluster.hpp"
#include "sim/program.hpp"

namespace stageline {

/// Whether a program without messages needs them: a route in use costs time, messages block, or the
/// roles of a stage are split.
bool needs_messages(const Program& program, const Network& network);

}  // namespace stageline
