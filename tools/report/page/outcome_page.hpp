// The page of one result, or of several schedules of one problem.
#pragma once

#include <span>

#include "tools/answers/simulated.hpp"
#include "tools/report/page/page.hpp"

namespace stageline::report {

/// `asked` and `outcomes` are parallel, and not empty; the outcomes have their curves.
Page page_of(const Setting& setting, std::span<const Case> asked,
             std::span<const Outcome> outcomes);

/// The page of a simulation, with its waterfall where it has one. Its outcome has its curves.
Page simulation_page(const answers::Simulation& found);

}  // namespace stageline::report
