// What is bundled in the binary, and files beside it, by the names that the user writes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/letters.hpp"
#include "tools/base/provided_files.hpp"
#include "traces/traces.hpp"

namespace stageline {

/// The entry of that name, in small or capital letters, or null.
inline const Bundled* find_bundled(const std::vector<Bundled>& table, const std::string& name) {
  for (const Bundled& bundled : table) {
    if (same_name(bundled.name, name)) return &bundled;
  }
  return nullptr;
}

/// Whether there is such a file; "-" is standard input.
inline bool is_input_file(const std::string& path) {
  std::error_code ignored;
  return path == "-" || std::filesystem::exists(path, ignored) || provided_file(path);
}

/// The names of the table, in its order.
inline std::vector<std::string> bundled_names(const std::vector<Bundled>& table) {
  std::vector<std::string> names;
  for (const Bundled& bundled : table) names.emplace_back(bundled.name);
  return names;
}

}  // namespace stageline
