// Declares the flag, and writes the file.
#include "tools/commands/html_flag.hpp"

#include "tools/base/files.hpp"

namespace stageline {

Flag add_html_flag(Flags command, std::string& file, const std::string& help) {
  return command.in(SettingGroup::output).common().option("--html", file, help).writes_file();
}

void write_page(const std::string& file, const Page& page) {
  if (!file.empty()) write_file(file, page_html(page));
}

}  // namespace stageline
