// Queries the terminal.
#include "tools/commands/terminal.hpp"

#include <unistd.h>

#include <cstdlib>

namespace stageline {

bool colour_wanted() { return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr; }

}  // namespace stageline
