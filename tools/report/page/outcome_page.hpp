// The page of one result, or of several schedules of one problem.
#pragma once

#include <span>

#include "tools/inputs/setting.hpp"
#include "tools/report/page/page.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// `asked` and `outcomes` are parallel, and not empty; the outcomes have their curves.
Page page_of(const Setting& setting, std::span<const Case> asked,
             std::span<const Outcome> outcomes);

}  // namespace stageline
