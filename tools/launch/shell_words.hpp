// The commands of a shell script, with variables and arrays replaced by what they hold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/launch/arguments.hpp"

namespace stageline {

struct ShellCommand {
  int line = 0;  // where it begins, from 1
  std::vector<std::string> words;
};

/// Simple commands in order; assignments, control words and what is not known are no commands. A
/// word with a value that cannot be known holds unknown_word(). Throws TraceError for a quote that
/// does not end.
std::vector<ShellCommand> shell_commands(const std::string& text, const std::string& file,
                                         const LaunchAdditions& variables);

/// "\x01NAME: why\x01" within a word: the value of NAME is not known.
bool is_unknown_word(std::string_view word);
/// Whether it is not known because a branch sets it, or adds to it.
bool is_set_in_branch(std::string_view word);
/// "LAYERS, which no line sets"
std::string why_unknown(std::string_view word);

}  // namespace stageline
