// What would fit, as JSON.
#pragma once

#include "tools/base/json.hpp"
#include "tools/compare/advice.hpp"

namespace stageline::report {

/// {"fitting": […], "nearest": …, "simulated": …, "refused": …, "tried": […], "all": …}; keys
/// in tools/report/json/README.md.
Json ways_to_fit_json(const WaysToFit& ways);

}  // namespace stageline::report
