// The pace of a schedule beside its lower bounds, as text and JSON.
#pragma once

#include <string>
#include <string_view>

#include "tools/answers/bounded.hpp"

namespace stageline::report {

/// Why there is no bound, in one sentence.
std::string no_bound(const Case& asked);

/// Heading (unless `quiet`), step, cycle, the table of the bounds, and the distance to the largest;
/// wrapped.
std::string bound_text(const answers::BoundAnswer& answered, int width, bool quiet);

/// Keys in tools/report/json/README.md.
std::string bound_json(const answers::BoundAnswer& answered);

}  // namespace stageline::report
