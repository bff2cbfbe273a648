// What no answer holds: words and numbers that cannot be.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace stageline::test {

/// The first word of `text` that no answer holds: not a number, infinity, and, where nothing is
/// compared, a negative number. Empty: none.
std::string nonsense(const std::string& text, bool differences);

/// The first number of the answer that is negative though it is no difference, or missing though it
/// is always known; "": none.
std::string wrong_number(const nlohmann::json& value, const std::string& where);

}  // namespace stageline::test
