// Finds, reads and decompresses a file of a data set.
#include "tools/lab/datasets/file_bytes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "traces/gzip.hpp"

namespace stageline::lab {

namespace fs = std::filesystem;

FileBytes first_of(const std::string& folder, const std::vector<std::string>& names) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw TraceError(
        folder, "", fs::exists(folder, ignored) ? "it is not a folder" : "there is no such folder");
  }
  for (const std::string& name : names) {
    const std::string file = (fs::path(folder) / name).string();
    if (!fs::exists(file, ignored)) continue;
    std::string bytes = unpacked(read_file(file), file, Packed::bytes);
    if (bytes.empty()) throw TraceError(file, "", "the file is empty; copy it again");
    return {file, std::move(bytes)};
  }
  const std::vector<std::string> others(names.begin() + 1, names.end());
  throw TraceError((fs::path(folder) / names.front()).string(), "",
                   fmt::format("there is no such file{}{}", others.empty() ? "" : ", nor ",
                               fmt::join(others, ", nor ")));
}

}  // namespace stageline::lab
