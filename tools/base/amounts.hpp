// Counts, dollars and joules for people.
#pragma once

#include <string>

namespace stageline {

/// "975", "6.442k", "1.012M", "70.55B", "15T": four digits, and the unit of a count.
std::string count_text(double count);

/// "$2.531M", "$812.50"; below a dime three digits: "$0.00213".
std::string dollars_text(double dollars);

/// "12.34 kJ", "812.5 J", "1.234 GJ".
std::string joules_text(double joules);

}  // namespace stageline
