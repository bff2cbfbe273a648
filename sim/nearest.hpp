// The known name that a mistyped one most likely means.
#pragma once

#include <string>
#include <vector>

namespace stageline {

/// The name in `known` nearest to `name` by edit distance (characters inserted, deleted or
/// replaced), the first of equals. Empty where even that differs in more than half of the
/// characters of `name` and one.
std::string nearest(const std::string& name, const std::vector<std::string>& known);

}  // namespace stageline
