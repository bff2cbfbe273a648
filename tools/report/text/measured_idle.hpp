// Reports the idle time of a measured run by cause.
#pragma once

#include <string>

#include "sim/analysis/measured_idle.hpp"
#include "traces/timelines.hpp"

namespace stageline::report {

/// A table by device, in shares of the whole time, and one sentence on the largest cause.
std::string measured_idle_text(const KinetoRun& run, const MeasuredIdle& idle);

/// The same as JSON; the keys are documented in tools/report/json/README.md.
std::string measured_idle_json(const KinetoRun& run, const MeasuredIdle& idle);

}  // namespace stageline::report
