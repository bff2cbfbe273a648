// The shortest order of a step, as text and JSON.
#pragma once

#include <string>

#include "tools/answers/shortest.hpp"

namespace stageline::report {

/// Heading (unless `quiet`), value, order, bound and step.
std::string optimal_text(const answers::OptimalAnswer& answered, bool quiet);

/// Keys in tools/report/json/README.md.
std::string optimal_json(const answers::OptimalAnswer& answered);

}  // namespace stageline::report
