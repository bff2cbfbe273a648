// --html, for the commands that make a page.
#pragma once

#include <string>

#include "tools/commands/flags.hpp"
#include "tools/report/page/page.hpp"

namespace stageline {

/// --html with this help; `file` is empty where it is not given, "-" is standard output.
Flag add_html_flag(Flags command, std::string& file, const std::string& help);

/// Writes the page where `file` is not empty. Throws UsageError as write_file() does.
void write_page(const std::string& file, const Page& page);

}  // namespace stageline
