// What a program that is given in place of a schedule says itself.
#pragma once

#include "tools/study/case.hpp"

namespace stageline {

/// Throws UsageError where the case has other devices, micro-batches, steps or weights than the
/// program that its spec gives. The case is of one pipeline.
void check_given(const Case& asked);

}  // namespace stageline
