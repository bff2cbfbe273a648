// A file of a data set, whole. For this folder only.
#pragma once

#include <string>
#include <vector>

namespace stageline {

struct FileBytes {
  std::string file;  // the path that was read
  std::string bytes;
};

/// The first of `names` that is in `folder`, unpacked where it is gzip data. Throws TraceError
/// where there is none, or where it is empty.
FileBytes first_of(const std::string& folder, const std::vector<std::string>& names);

}  // namespace stageline
