// The text of --help, also at the width of a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/inputs/setting_group.hpp"

namespace stageline::cli {

/// What --help says of one command. The layout is ours, since that of the parser changes between
/// its versions, and the man page and the completions are made of it.
struct HelpPage {
  struct Entry {
    std::string name;  // "--out,-o FILE", "TRACE TEXT", "compare"
    std::string text;
    SettingGroup group = SettingGroup::other;  // of an option
    bool common = true;                        // of an option: on the first screen
  };
  std::string command;  // "stageline compare"
  std::string about;    // one line
  std::string usage;    // "stageline compare [OPTIONS] TRACE"
  std::vector<Entry> positionals;
  std::vector<Entry> options;
  std::vector<Entry> subcommands;
  std::string footer;  // lines; may be empty
};

/// A command with no more options has all of them on its first screen, in one list; of others there
/// are those that are common.
inline constexpr std::size_t most_on_first_screen = 25;
enum class HelpScreen : std::uint8_t { first, all };

/// The page with each description in one line, behind column 30, and many options under the
/// headings of their groups.
std::string printed(const HelpPage& page, HelpScreen screen);

/// A printed page with its lines wrapped at `width` columns; 0: as it is. An example of a command
/// that is longer is continued behind a backslash, so that it can be copied.
std::string help_text(const std::string& page, int width);

}  // namespace stageline::cli
