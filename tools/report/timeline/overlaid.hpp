// Draws two timelines of one pipeline in one picture: each device twice, one row above the other.
#pragma once

#include <string>

#include "tools/report/timeline/drawing.hpp"

namespace stageline::report {

/// A drawing with the rows "gpu0 measured", "gpu0 predicted", "gpu1 measured", … in which a row's
/// idle time is a share of its own timeline. Devices are paired by index and named by `names` (of
/// either side); surplus devices of one side have a single row. The caller sets title and notes.
Drawing overlaid(const Timeline& above, const std::string& above_word, const Timeline& below,
                 const std::string& below_word, const std::vector<std::string>& names);

}  // namespace stageline::report
