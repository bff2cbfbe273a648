// Reads a whole file of a data set. For this folder only.
#pragma once

#include <string>
#include <vector>

namespace stageline::lab {

struct FileBytes {
  std::string file;  // the path that was read
  std::string bytes;
};

/// The contents of the first of `names` found in `folder`, decompressed if gzip data. Throws
/// TraceError where none is found, or where the file is empty.
FileBytes first_of(const std::string& folder, const std::vector<std::string>& names);

}  // namespace stageline::lab
