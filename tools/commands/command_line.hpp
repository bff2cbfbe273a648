// One run of a program with subcommands, from its arguments to its exit code.
#pragma once

#include <span>
#include <string>

#include "tools/commands/command.hpp"

namespace stageline::cli {

/// Runs the one of `commands` that the arguments name; argv[0] is ignored, and `about` is the first
/// line of --help. Writes to stdout, and every error to stderr as one sentence. Returns the exit
/// code: 0 done; 1 the answer is no; 2 the input is bad or the output was lost; 3 the answer
/// contradicts itself, a defect of Stageline.
int run_commands(std::span<const Command* const> commands, const std::string& about, int argc,
                 const char* const* argv);

/// The same of the program `stageline`, which becomes stageline-lab for the commands of that.
int run_command_line(int argc, const char* const* argv);

}  // namespace stageline::cli
