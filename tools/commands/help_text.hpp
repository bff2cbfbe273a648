// The text of --help, also at the width of a terminal.
#pragma once

#include <string>
#include <vector>

namespace stageline {

/// What --help says of one command. The layout is ours, since that of the parser changes between
/// its versions, and the man page and the completions are made of it.
struct HelpPage {
  struct Entry {
    std::string name;  // "--out,-o FILE", "TRACE TEXT", "compare"
    std::string text;
  };
  std::string about;  // one line
  std::string usage;  // "stageline compare [OPTIONS] TRACE"
  std::vector<Entry> positionals;
  std::vector<Entry> options;
  std::vector<Entry> subcommands;
  std::string footer;  // lines; may be empty
};

/// The page with each description in one line, behind column 30.
std::string printed(const HelpPage& page);

/// A printed page with its lines wrapped at `width` columns; 0: as it is. An example of a command
/// that is longer is continued behind a backslash, so that it can be copied.
std::string help_text(const std::string& page, int width);

}  // namespace stageline
