// Reading and writing files without surprises.
#pragma once

#include <string>

namespace stageline {

/// The whole file; "-" is standard input. Throws UsageError with the system's reason.
std::string read_file(const std::string& path);

/// Writes beside the file, then renames, so that nobody ever sees half of it; "-" is standard
/// output. Missing folders are made. Throws UsageError with the system's reason.
void write_file(const std::string& path, const std::string& content);

}  // namespace stageline
