// Compares the files of a command line before it runs.
#include "tools/commands/outputs.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "sim/errors.hpp"
#include "tools/base/files.hpp"

namespace stageline {
namespace {

namespace fs = std::filesystem;

// Whether something else than a file stands there, which can be written any number of times.
bool is_stream(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return path == "-" || (fs::exists(status) && !fs::is_regular_file(status));
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::exists(a, error) && fs::exists(b, error)) return fs::equivalent(a, b, error);
  const fs::path at = fs::weakly_canonical(end_of_links(a), error);
  return !error && at == fs::weakly_canonical(end_of_links(b), error) && !error;
}

// The parts of a word that may name a file: "model:config.json@h100,batch=8", "a.json,b.json".
std::vector<std::string> files_in(const std::string& word) {
  constexpr std::string_view between = ",:@=";
  std::vector<std::string> files;
  const auto add = [&files](std::string part) {
    std::error_code error;
    if (!part.empty() && fs::is_regular_file(part, error)) files.push_back(std::move(part));
  };
  add(word);
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t end = std::min(word.find_first_of(between, begin), word.size());
    if (end - begin < word.size()) add(word.substr(begin, end - begin));
    begin = end + 1;
  }
  return files;
}

}  // namespace

void check_outputs(const CommandPaths& paths) {
  for (std::size_t i = 0; i < paths.files.size(); ++i) {
    const NamedPath& output = paths.files[i];
    check_writable(output.path);
    if (output.path.empty() || is_stream(output.path)) continue;
    for (std::size_t k = 0; k < i; ++k) {
      const NamedPath& other = paths.files[k];
      if (other.path.empty() || !same_file(other.path, output.path)) continue;
      throw UsageError(fmt::format("{} and {} write the same file, \"{}\"; give each its own",
                                   other.flag, output.flag, output.path));
    }
    for (const NamedPath& word : paths.words) {
      for (const std::string& file : files_in(word.path)) {
        if (!same_file(file, output.path)) continue;
        throw UsageError(
            fmt::format("{} would overwrite \"{}\", which {} reads; write another file",
                        output.flag, file, word.flag));
      }
    }
  }
  for (const NamedPath& folder : paths.folders) check_folder(folder.path);
}

}  // namespace stageline
