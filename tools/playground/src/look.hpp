// Runs, as rows of figures and as one diagram.
#pragma once

#include <string>

#include "sim/program.hpp"
#include "tools/inputs/recordings.hpp"

namespace stageline {

/// The order in which the ops of a run started, as a program: that of the recording where it has
/// one. Throws ProgramError where the ops make none.
Program order_of(const Recording& recording);

/// `text`: a list of requests, each with one schedule or a program, and of {"file": PATH},
/// timelines in files. The reply: {"runs": [{"row": …} or {"error": …}, …], "diagram": {"data",
/// "blobs"}}, in which the diagram has the runs without error (tools/report/page/diagram.hpp; null:
/// none).
std::string look(const std::string& text);

}  // namespace stageline
