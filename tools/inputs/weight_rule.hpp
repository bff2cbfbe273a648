// The weight rule that the user names.
#pragma once

#include <string>

#include "sim/program.hpp"

namespace stageline {

/// "stash". Throws UsageError, which begins with `what`: "--weights is one of flush, stash, …".
WeightRule parse_weight_rule(const std::string& text, const std::string& what);

}  // namespace stageline
