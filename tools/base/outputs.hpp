// The files that a command line names: what it writes may be none of those it reads.
#pragma once

#include <string>
#include <vector>

namespace stageline {

/// A flag and a value of it.
struct NamedPath {
  std::string flag;  // "--json"
  std::string path;
};

struct CommandPaths {
  std::vector<NamedPath> files;     // that are written
  std::vector<NamedPath> folders;   // that are written to, and made where they are missing
  std::vector<NamedPath> patterns;  // of further files that are written: "folder/*.svg"
  std::vector<NamedPath> words;     // all other values: some name files that are read
};

/// Throws UsageError where a file or folder could not be written, two flags write one file, or one
/// of them is read: also through symbolic and hard links. "-", devices and FIFOs may be named
/// several times.
void check_outputs(const CommandPaths& paths);

/// A pattern of CommandPaths: `form` with its "{}" replaced by what the user gave, in which no
/// character is special, and "{stem}" by the same without its ending, ".json" or ".json.gz".
std::string pattern_of(const std::string& form, const std::string& given);

}  // namespace stageline
