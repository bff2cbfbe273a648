// The commands of stageline-lab.
#pragma once

#include <span>

#include "tools/commands/command_line.hpp"

namespace stageline::lab {

/// In the order of --help.
std::span<const cli::Command* const> lab_commands();

}  // namespace stageline::lab
