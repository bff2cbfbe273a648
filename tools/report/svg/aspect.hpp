// A picture of a given shape, for a slide or a column.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tools/report/svg/options.hpp"

namespace stageline::report {

/// Width over height of "16:9" or "4:3"; 1/4 to 4. Throws UsageError for another form or shape.
double aspect_of(std::string_view text);

/// The picture that `draw` makes at the width that gives it this shape, least_desk to most_picture:
/// a picture's height follows from its content, and its width is nearly free. What is then lacking
/// at the sides, or above and below, is its ground. Throws what `draw` throws.
std::string in_aspect(double aspect, SvgOptions options,
                      const std::function<std::string(const SvgOptions&)>& draw);

}  // namespace stageline::report
