// One run of the `stageline` command, from its arguments to its exit code.
#pragma once

#include <string>

namespace stageline {

/// Runs the subcommand that the arguments name; argv[0] is ignored. Writes to stdout, and every
/// error to stderr as one sentence. Returns the exit code: 0 done; 1 the answer is no; 2 the input
/// is bad or the output was lost; 3 the answer contradicts itself, a defect of Stageline.
int run_command_line(int argc, const char* const* argv);

}  // namespace stageline
