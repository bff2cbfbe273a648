// The parts of a step from the devices' peak on, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/answers/step_parts.hpp"
#include "tools/base/json.hpp"

namespace stageline::report {

/// A row a part, each with a bar that begins where the one above ends, and one for their sum: the
/// `predicted` step before what is not explained, and the measured one behind it. `width`: the most
/// columns of a line; bars are left out where there is no room.
std::string step_parts_table(const std::vector<answers::StepPart>& parts, Time predicted,
                             int width);

/// The three largest parts that something makes smaller, a line each: "→ messages 12 % of …".
std::string first_changes(const std::vector<answers::StepPart>& parts);

/// [{"part", "time_s", "time_ps", "remedy"}, …].
Json step_parts_json(const std::vector<answers::StepPart>& parts);

}  // namespace stageline::report
