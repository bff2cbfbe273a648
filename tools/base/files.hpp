// Reading and writing files without surprises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stageline {

/// A text has no zero byte, and is refused at the first one, before the rest is read; gzip data and
/// SQLite databases (of text_or_gzip) have.
enum class FileHolds : std::uint8_t { bytes, text, text_or_gzip };

/// The whole file; "-" is standard input. Throws UsageError with the system's reason, and for more
/// than `longest_file`, a file's size before it is read. What is provided (provided_files.hpp)
/// stands in for a file.
std::string read_file(const std::string& path, FileHolds holds = FileHolds::bytes);
inline constexpr std::uint64_t longest_file = std::uint64_t{4} << 30U;    // bytes
inline constexpr std::uint64_t longest_pipe = std::uint64_t{1} << 30U;    // of what is no file
inline constexpr std::uint64_t longest_text = std::uint64_t{256} << 20U;  // of FileHolds::text

/// From now on what is no regular file, which can be read once, is held: the next read_file() of
/// the same path gives the same. For processes that end with their command.
void keep_streams();

/// From now on write_file() to standard output, which is a terminal, writes nothing that would
/// drive it: visible_lines().
void show_standard_output();

/// The same of a text in UTF-8, without the byte order mark that may precede it. Throws
/// UsageError for UTF-16 or UTF-32, recognised by their marks.
std::string read_text(const std::string& path);

/// The first bytes of such a text; "" where there is no such regular file.
std::string read_beginning(const std::string& path, std::size_t most);

/// What read_text does with the content of a file.
std::string without_mark(std::string text, const std::string& path);

/// "-" writes to standard output; program_main() checks that for errors on exit. A regular file is
/// written to a temporary file and renamed, so it is never seen half written; it keeps its
/// permission bits, and a symbolic link to it stays one. What a killed writer may have left,
/// FILE.stageline.tmp, the next one removes. A device or FIFO is written in place.
/// Folders are not made: see make_folder(). Throws UsageError with the system's reason.
void write_file(const std::string& path, const std::string& content);

/// Makes the folder, and those above it, where they are missing. Throws UsageError with the
/// system's reason.
void make_folder(const std::string& path);

/// Throws UsageError if write_file could not: checks before a run of minutes that its result can
/// be kept. Does nothing for an empty path.
void check_writable(const std::string& path);

/// The same of a folder that make_folder() would make, and of what would be written to it.
void check_folder(const std::string& path);

/// Where a chain of symbolic links ends, be there a file or not yet.
std::string end_of_links(const std::string& path);

}  // namespace stageline
