// Reports the diff of two programs: text and JSON.
#pragma once

#include <string>

#include "tools/answers/program_diff.hpp"

namespace stageline::report {

/// "equal", or the first difference, the number of differences, and their cost. `width`: the most
/// columns of a line of a table; 0: any.
std::string diff_text(const answers::DiffReport& report, int width = 0);

/// The same as JSON; the keys are documented in tools/report/json/README.md.
std::string diff_json(const answers::DiffReport& report);

}  // namespace stageline::report
