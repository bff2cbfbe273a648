// What the programs of the executor report of a run beside its result.
#pragma once

#include <string>
#include <vector>

#include "tools/executor/processes/process.hpp"

namespace stageline::executor {

/// The date in UTC: "2026-11-20".
std::string today();

/// The command as typed, without --quiet, and without the flags `outputs` and their values.
std::string command_of(const std::string& program, int argc, const char* const* argv,
                       const std::vector<std::string>& outputs = {});

/// A command that is expected to take longer says so, under --quiet too.
inline constexpr double quiet_for_seconds = 60;

/// Prints `warned` and the warnings of the process to standard error, each as "warning: …".
void print_warnings(const std::vector<std::string>& warned, const ProcessReport& process);

}  // namespace stageline::executor
