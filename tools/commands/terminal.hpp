// The terminal on standard output.
#pragma once

namespace stageline {

/// Whether standard output is a terminal and NO_COLOR is not set.
bool colour_wanted();

}  // namespace stageline
