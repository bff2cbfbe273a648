// What the ranks of a measured run did with a step, as text and JSON.
#pragma once

#include <string>

#include "tools/answers/profiled.hpp"

namespace stageline::report {

/// How long steps take and vary, the parts of a step with bars, what to change first, the shares of
/// each rank, and the links that messages took. `width`: the most columns of a line; 0: any.
std::string profiled_text(const answers::ProfiledRun& found, int width);

/// Keys in tools/report/json/README.md.
std::string profiled_json(const answers::ProfiledRun& found);

}  // namespace stageline::report
