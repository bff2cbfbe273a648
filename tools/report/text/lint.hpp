// Reports the findings of lint(), as text and as JSON.
#pragma once

#include <string>

#include "sim/check/lint.hpp"

namespace stageline::report {

/// A paragraph per finding: "FILE:LINE:COLUMN: severity: op on device: message [rule]", then the
/// lists around it; and a line with the number of findings. Without `notes` only errors and
/// warnings. Empty where there are no findings.
std::string lint_report(const std::string& file, const Program& program, const Lint& lint,
                        bool notes);

/// {"file", "errors", "warnings", "notes", "findings": [{"severity", "rule", "device", "position",
/// "op", "line", "column", "message", "figure"}], "left_out": {rule: number}}; null where a finding
/// has no such place. Devices by name, positions from 0, lines and columns from 1.
std::string lint_json(const std::string& file, const Program& program, const Lint& lint);

}  // namespace stageline::report
