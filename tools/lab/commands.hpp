// The commands of stageline-lab.
#pragma once

#include <span>

#include "tools/commands/command_line.hpp"

namespace stageline {

/// In the order of --help.
std::span<const Command* const> lab_commands();

}  // namespace stageline
