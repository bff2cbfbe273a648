// A subcommand of `stageline`: one constant in a file of its own, found through the list of names
// in meson.build.
#pragma once

#include <span>
#include <string_view>

#include "tools/commands/flags.hpp"

namespace stageline {

struct Command {
  std::string_view name;     // as typed
  std::string_view about;    // one line of --help
  void (*add)(Flags flags);  // declares its flags, and calls runs() with what they start
  std::string_view parent;   // of a subcommand's subcommand; else empty
};

/// In the order of --help; a parent comes before its subcommands.
std::span<const Command* const> commands();

}  // namespace stageline
