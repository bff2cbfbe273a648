#include "tools/report/svg/width.hpp"

#include <fmt/core.h>

#include "sim/base/errors.hpp"

namespace stageline::report {

void check_width(int width) {
  if (width >= least_picture && width <= most_picture) return;
  throw UsageError(fmt::format("the width of a drawing must be {} to {} px, but is {}",
                               least_picture, most_picture, width));
}

}  // namespace stageline::report
