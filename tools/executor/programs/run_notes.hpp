// What the programs of the executor report of a run beside its result.
#pragma once

#include <string>
#include <vector>

#include "tools/executor/processes/process.hpp"

namespace stageline::executor {

/// The date in UTC: "2026-11-20".
std::string today();

/// Prints `warned` and the warnings of the process to standard error, each as "warning: …".
void print_warnings(const std::vector<std::string>& warned, const ProcessReport& process);

}  // namespace stageline::executor
