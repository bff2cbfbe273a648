// Two timelines of one pipeline in one picture: each device twice, one row above the other.
#pragma once

#include <string>

#include "tools/report/timeline/drawing.hpp"

namespace stageline {

/// A drawing with the rows "gpu0 measured", "gpu0 predicted", "gpu1 measured", … in which a row's
/// idle time is a share of its own timeline. Devices are paired by their place, and named as
/// `names` (of either) names them; where one side has more of them, those stand alone. Title and
/// notes are the caller's.
Drawing overlaid(const Timeline& above, const std::string& above_word, const Timeline& below,
                 const std::string& below_word, const std::vector<std::string>& names);

}  // namespace stageline
