// What lint() found, as text and as JSON.
#pragma once

#include <string>

#include "sim/check/lint.hpp"

namespace stageline {

/// A paragraph a finding: "FILE:LINE:COLUMN: severity: op on device: message [rule]", then the
/// lists around it; and a line with their number. Without `notes` only errors and warnings. Empty
/// where there is nothing to say.
std::string lint_report(const std::string& file, const Program& program, const Lint& lint,
                        bool notes);

/// {"file", "errors", "warnings", "notes", "findings": [{"severity", "rule", "device", "position",
/// "op", "line", "column", "message", "figure"}], "left_out": {rule: number}}; what has no place
/// has null for it. Devices by name, positions from 0, lines and columns from 1.
std::string lint_json(const std::string& file, const Program& program, const Lint& lint);

}  // namespace stageline
