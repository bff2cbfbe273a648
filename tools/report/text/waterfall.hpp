// From the ideal step to the real one: a table with bars, and JSON.
#pragma once

#include <string>

#include "tools/base/json.hpp"
#include "tools/study/waterfall.hpp"

namespace stageline {

/// A row a cause that takes time, each with a bar that begins where the one above ends, and one
/// sentence. `width`: the most columns of a line; bars are left out where there is no room.
std::string waterfall_table(const Waterfall& waterfall, int width);

/// {"step_s", "step_ps", "ideal_…", "causes": [{"cause", "time_s", "time_ps"}, …]}.
Json waterfall_json(const Waterfall& waterfall);

}  // namespace stageline
