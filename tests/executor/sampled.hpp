// How much a suite runs: all of it, or a sample where another LibTorch runs all of it in the same
// check.
#pragma once

#include <cstdlib>

namespace stageline::executor {

/// Whether STAGELINE_SAMPLE is set in the environment (`tools/test --all` sets it for the second
/// LibTorch).
inline bool sampled() { return std::getenv("STAGELINE_SAMPLE") != nullptr; }

}  // namespace stageline::executor
