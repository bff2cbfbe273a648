// Reading and writing files without surprises.
#pragma once

#include <string>

namespace stageline {

/// The whole file; "-" is standard input. Throws UsageError with the system's reason.
std::string read_file(const std::string& path);

/// The same of a text in UTF-8, without the byte order mark that may stand before it. Throws
/// UsageError for UTF-16 or UTF-32, told by their marks.
std::string read_text(const std::string& path);

/// What read_text does with the content of a file.
std::string without_mark(std::string text, const std::string& path);

/// "-" is standard output; whether that arrived, main asks at the end. A regular file is written
/// beside and then renamed, so that nobody ever sees half of it; it keeps its permission bits, and
/// a symbolic link to it stays one. What exists and is no regular file (a device, a FIFO) is
/// written in place. Folders are not made: see make_folder(). Throws UsageError with the system's
/// reason.
void write_file(const std::string& path, const std::string& content);

/// Makes the folder, and those above it, where they are missing. Throws UsageError with the
/// system's reason.
void make_folder(const std::string& path);

/// Throws UsageError if write_file could not: that a result of minutes can be kept is known before
/// they pass. An empty path is none.
void check_writable(const std::string& path);

}  // namespace stageline
