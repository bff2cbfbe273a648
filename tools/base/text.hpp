// Times and shares with their sign, as reports print differences.
#pragma once

#include <string>

#include "sim/units.hpp"

namespace stageline {

/// "+1.500 ms", "-20.0 ns", "0".
std::string signed_time(Time time);

/// "+12.3 %", "-0.4 %"; without a sign where it rounds to nothing. `share`: a fraction of 1.
std::string signed_share(double share);

}  // namespace stageline
