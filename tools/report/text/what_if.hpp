// What scenarios say of schedules, and failures of a long run: text and picture.
#pragma once

#include <string>
#include <vector>

#include "tools/answers/uncertain.hpp"
#include "tools/report/svg/options.hpp"

namespace stageline::report {

/// The winner, what failures leave of the time, and how long the run takes: a sentence each.
std::vector<std::string> what_if_advice(const answers::WhatIfQuestion& question,
                                        const answers::WhatIfAnswer& found);

/// Heading (unless `quiet`), table, what is not possible, and the advice; wrapped.
std::string what_if_text(const answers::WhatIfAnswer& found, const std::vector<std::string>& advice,
                         int width, bool quiet);

/// The distributions of the first schedules, with the notes below them, as SVG.
std::string what_if_svg(const answers::WhatIfAnswer& found, const std::vector<std::string>& said,
                        const SvgOptions& options);

}  // namespace stageline::report
