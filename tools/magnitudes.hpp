// What would not fit into 64 bits is refused before anything is added up.
#pragma once

#include "tools/study.hpp"

namespace stageline {

/// Throws UsageError when the times of a long run (done one after the other, as the naive schedule
/// does) or the bytes that one device may hold come near 2^63, and says by how much.
void check_magnitudes(const Case& asked);

}  // namespace stageline
