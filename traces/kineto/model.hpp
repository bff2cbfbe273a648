// Extracts the costs of a profiled run as a trace, the starting point of what-if studies.
#pragma once

#include <string>

#include "sim/model.hpp"
#include "traces/timelines.hpp"

namespace stageline {

/// One layer per stage, in order: medians over the micro-batches of all steps, half the
/// interquartile range as spread. Where only B was run, I is half of it and W the rest; where only
/// I and W were, B is their sum; ops that ran only overlapped get the share that kind_times
/// assigns. A profile records no bytes: they stay 0. The provenance notes all this. `batch`:
/// samples in a micro-batch, 0 when unknown. `source`: the files, for the provenance.
Model kineto_model(const KinetoRun& run, const std::string& name, int batch,
                   const std::string& source);

}  // namespace stageline
