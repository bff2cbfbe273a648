// Measured steps of rows that name the log of their training.
#pragma once

#include <string>
#include <vector>

#include "tools/published/points.hpp"

namespace stageline {

/// Reads the log of each row that names one: the median of its steps behind the warm-up becomes the
/// row's step or tokens/s, and its batch the row's where none is printed. A path is that from the
/// folder of `file`, the rows' own. Returns notes, a sentence each. Throws TraceError as
/// read_printed_log() and summary_of(), and UsageError where row and log contradict each other.
std::vector<std::string> take_logged_steps(std::vector<Point>& points, const std::string& file);

}  // namespace stageline
