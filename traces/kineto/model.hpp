// The costs that a profile of a real run shows, as a trace to start what-if studies from.
#pragma once

#include <string>

#include "sim/model.hpp"
#include "traces/timelines.hpp"

namespace stageline {

/// A layer a stage, in order: medians over the micro-batches of all steps, half the interquartile
/// range as spread. Where only B was run, I is half of it and W the rest; where only I and W were,
/// B is their sum; ops of which all ran overlapped have the share that kind_times says. Bytes are
/// not in a profile and stay 0. The provenance says all that. `batch`: samples in a micro-batch, 0
/// when unknown. `source`: the files, for the provenance.
Model kineto_model(const KinetoRun& run, const std::string& name, int batch,
                   const std::string& source);

}  // namespace stageline
