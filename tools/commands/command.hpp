// A subcommand of `stageline`: a constant in its own file, registered by its name in meson.build.
#pragma once

#include <span>
#include <string_view>

#include "tools/commands/flags.hpp"

namespace stageline {

struct Command {
  std::string_view name;     // as typed
  std::string_view about;    // one line of --help
  void (*add)(Flags flags);  // declares its flags and calls Flags::runs(); null: stageline-lab has it
  std::string_view parent;   // the command that it is a subcommand of; empty: stageline
};

/// In the order of --help; a parent comes before its subcommands.
std::span<const Command* const> commands();

}  // namespace stageline
