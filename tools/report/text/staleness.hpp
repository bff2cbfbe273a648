// The staleness of a schedule without flush, as lines for people.
#pragma once

#include <string>

#include "tools/study/outcome.hpp"

namespace stageline::report {

/// The stream facts of an outcome, with delays, windows and host memory where there are any. Empty
/// for a schedule with a flush and without host memory.
std::string stream_report(const Outcome& outcome);

}  // namespace stageline::report
