// A subcommand of `stageline`: a constant in its own file, registered by its name in meson.build.
#pragma once

#include <span>
#include <string_view>

#include "tools/commands/flags.hpp"

namespace stageline::cli {

struct Command {
  std::string_view name;   // as typed
  std::string_view about;  // one line of --help
  /// Declares its flags and calls Flags::runs(). Null: it is a command of stageline-lab.
  void (*add)(Flags flags);
  std::string_view parent;  // the command that it is a subcommand of; empty: stageline
};

/// In the order of --help; a parent comes before its subcommands.
std::span<const Command* const> commands();

}  // namespace stageline::cli
