// Nsight Systems' own export (nsys export --type sqlite) as profiles that the readers of PyTorch's
// profiles take: NVTX ranges, calls of the runtime, kernels and copies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/timelines.hpp"

namespace stageline {

/// Whether `bytes` begin as a SQLite database.
bool is_sqlite(std::string_view bytes);

/// One text in Kineto's format for each process that has ranges and kernels, or ranges alone where
/// none has kernels; by device, then by number. Of several the file names say the process. Throws
/// TraceError where it is no such export, is damaged, or this build has no libsqlite3.
std::vector<NamedText> nsight_profiles(const std::string& bytes, const std::string& file);

}  // namespace stageline
