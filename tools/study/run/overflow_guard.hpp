// What would not fit into 64 bits is refused before anything is added up: here of the model, before
// it is cut; what is priced is looked at again, with its links, by sim/sums.hpp.
#pragma once

#include "tools/study/case.hpp"

namespace stageline {

/// Throws UsageError when there are no micro-batches or too many, or when the times of a long run
/// (done one after the other, as the naive schedule does) or the bytes that one device may hold
/// pass 2^62, and says by how much.
void check_magnitudes(const Case& asked);

}  // namespace stageline
