// The text of --help at the width of a terminal.
#pragma once

#include <string>

namespace stageline {

/// The help that the parser writes, each description in one line, with its lines wrapped at `width`
/// columns; 0: as it is. An example of a command that is longer is continued behind a backslash, so
/// that it can be copied.
std::string help_text(const std::string& parser_help, int width);

}  // namespace stageline
