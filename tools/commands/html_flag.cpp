// Declares the flag.
#include "tools/commands/html_flag.hpp"

namespace stageline::cli {

Flag add_html_flag(Flags command, std::string& file, const std::string& help) {
  return command.in(SettingGroup::output).common().option("--html", file, help).writes_file();
}

}  // namespace stageline::cli
