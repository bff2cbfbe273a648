// Reads the figures of a run off its spans, ops and costs.
#pragma once

#include "tools/study/outcome.hpp"

namespace stageline {

/// The figures of an outcome that has its step time, program, costs, timeline, metrics, memory and
/// versions. study() and measured_outcome() call it last; readers take Outcome::figures.
Figures figures_of(const Outcome& outcome);

}  // namespace stageline
