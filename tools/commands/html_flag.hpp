// --html, for the commands that make a page.
#pragma once

#include <string>

#include "tools/commands/flags.hpp"

namespace stageline::cli {

/// --html with this help; `file` is empty where it is not given, "-" is standard output.
Flag add_html_flag(Flags command, std::string& file, const std::string& help);

}  // namespace stageline::cli
