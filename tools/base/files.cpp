#include "tools/base/files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <system_error>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/text/visible.hpp"
#include "tools/base/provided_files.hpp"

namespace stageline {
namespace {

namespace fs = std::filesystem;

// /dev/stdout after `> file`: to replace that file would lose all else that is printed.
bool is_standard_output(const fs::path& path) {
  struct stat file {};
  struct stat output {};
  return ::stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) &&
         ::fstat(STDOUT_FILENO, &output) == 0 && file.st_dev == output.st_dev &&
         file.st_ino == output.st_ino;
}

// The system's reason for failing, or nothing.
std::optional<std::string> write_and_close(std::FILE* out, const std::string& content) {
  const bool written = std::fwrite(content.data(), 1, content.size(), out) == content.size();
  int reason = errno;
  const bool closed = std::fclose(out) == 0;
  if (written && closed) return std::nullopt;
  if (written) reason = errno;
  return std::strerror(reason);
}

std::optional<std::string> write_in_place(const fs::path& target, const std::string& content) {
  std::FILE* const out = std::fopen(target.c_str(), "wb");
  if (out == nullptr) return std::strerror(errno);
  return write_and_close(out, content);
}

// Where a file is written before it takes the target's place: under the first name, unless a
// writer that lives has it. Processes of several machines may have one number, and threads of a
// process write, too.
std::array<fs::path, 2> names_beside(const fs::path& target) {
  return {
      fs::path(target).concat(".stageline.tmp"),
      fs::path(target).concat(fmt::format(".{}-{:08x}.tmp", ::getpid(), std::random_device{}()))};
}

enum class Links : std::uint8_t { are_files, followed };

bool is_named(int descriptor, const fs::path& name, Links links = Links::are_files) {
  struct stat file {};
  struct stat there {};
  const auto look = links == Links::followed ? ::stat : ::lstat;
  return ::fstat(descriptor, &file) == 0 && look(name.c_str(), &there) == 0 &&
         file.st_dev == there.st_dev && file.st_ino == there.st_ino;
}

// A writer's lock ends with it: what is not locked is of one that was killed, and is removed. False
// where another is at work.
bool freed(const fs::path& name) {
  const int left = ::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (left < 0) return errno == ENOENT;
  const bool dead = ::flock(left, LOCK_EX | LOCK_NB) == 0 && is_named(left, name);
  if (dead) ::unlink(name.c_str());
  ::close(left);
  return dead;
}

// A new file in the folder of the target, locked: without a name where the file system can, so that
// nothing stays of a writer that is killed.
struct NewFile {
  int descriptor = -1;
  std::optional<fs::path> name;
};

// How a file without a name is given one.
std::string link_of(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

NewFile open_new(const fs::path& target) {
  constexpr mode_t all = 0666;  // less the process's mask
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  int unnamed = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, all);
  if (unnamed >= 0 && !is_named(unnamed, fs::path(link_of(unnamed)), Links::followed)) {
    ::close(unnamed);  // there is no /proc, as in a bare chroot
    unnamed = -1;
  }
  if (unnamed >= 0) {
    ::flock(unnamed, LOCK_EX | LOCK_NB);
    return {unnamed, {}};
  }
  for (const fs::path& name : names_beside(target)) {
    if (!freed(name)) continue;
    // Follows no link that stands there.
    const int file = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, all);
    if (file < 0 && errno != EEXIST) return {};
    if (file < 0) continue;
    ::flock(file, LOCK_EX | LOCK_NB);
    if (is_named(file, name)) return {file, name};
    ::close(file);  // taken for one that was left, before it was locked
  }
  return {};
}

// Gives a file without a name one, for as long as a rename takes.
std::optional<fs::path> linked(int descriptor, const fs::path& target) {
  const std::string link = link_of(descriptor);
  for (const fs::path& name : names_beside(target)) {
    if (!freed(name)) continue;
    if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      return name;
    }
    if (errno != EEXIST) break;
  }
  return std::nullopt;
}

std::optional<std::string> replace(const fs::path& target, const std::string& content) {
  std::error_code error;
  const fs::file_status before = fs::status(target, error);
  if (fs::exists(before) && ::access(target.c_str(), W_OK) != 0) return std::strerror(errno);
  NewFile file = open_new(target);
  if (file.descriptor < 0) return std::strerror(errno);
  const int locked = ::dup(file.descriptor);  // until it has taken its place
  int reason = 0;
  const auto attempt = [&reason](bool done) {
    if (!done && reason == 0) reason = errno;
  };
  std::FILE* const out = ::fdopen(file.descriptor, "wb");
  const bool written = std::fwrite(content.data(), 1, content.size(), out) == content.size();
  attempt(written && std::fflush(out) == 0);
  // The old content is gone with the rename, which may be on the disk before this.
  if (fs::exists(before)) attempt(::fdatasync(file.descriptor) == 0 || errno == EINVAL);
  if (fs::exists(before)) {
    attempt(::fchmod(file.descriptor, static_cast<mode_t>(before.permissions())) == 0);
  }
  if (reason == 0 && !file.name) {
    file.name = linked(file.descriptor, target);
    attempt(file.name.has_value());
  }
  attempt(std::fclose(out) == 0);
  if (reason == 0) attempt(std::rename(file.name->c_str(), target.c_str()) == 0);
  std::error_code ignored;
  if (reason != 0 && file.name) fs::remove(*file.name, ignored);
  if (locked >= 0) ::close(locked);
  return reason == 0 ? std::nullopt : std::optional<std::string>(std::strerror(reason));
}

std::optional<std::string> write_to(const fs::path& path, const std::string& content) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return "it is a folder";
  if (error && status.type() != fs::file_type::not_found) return error.message();
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_in_place(path, content);
  const fs::path target = end_of_links(path.string());
  const fs::path folder = target.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error)) {
    if (fs::exists(folder, error)) return fmt::format("\"{}\" is not a folder", folder.string());
    return fmt::format("there is no folder \"{}\"", folder.string());
  }
  return replace(target, content);
}

// UTF-16 or UTF-32, by its mark.
bool is_wide(std::string_view text) {
  return text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") ||
         text.starts_with(std::string_view("\0\0\xFE\xFF", 4));
}

std::string content_of(std::istream& in, const std::string& path, FileHolds holds,
                       std::uint64_t most) {
  std::string content;
  std::vector<char> block(std::size_t{1} << 16U);
  while (in.read(block.data(), std::ssize(block)) || in.gcount() > 0) {
    const std::string_view part(block.data(), as_size(in.gcount()));
    const std::string_view start = content.empty() ? part : std::string_view(content);
    const bool binary = start.starts_with("\x1f\x8b") || start.starts_with("SQLite format 3");
    const bool text = holds == FileHolds::text || (holds == FileHolds::text_or_gzip && !binary);
    const std::size_t zero = text ? part.find('\0') : std::string_view::npos;
    content += part;
    if (zero != std::string_view::npos && !is_wide(content)) {
      throw UsageError(fmt::format("cannot read \"{}\": byte {} is zero, so this is no text", path,
                                   content.size() - part.size() + zero));
    }
    if (content.size() > most) {
      throw UsageError(fmt::format("cannot read \"{}\": it gives more than {} bytes", path, most));
    }
  }
  if (in.bad()) {
    throw UsageError(fmt::format("cannot read \"{}\": the read broke off", path));
  }
  return content;
}

std::atomic<bool> streams_are_kept{false};
std::atomic<bool> output_is_shown{false};

std::string read_anew(const std::string& path, FileHolds holds) {
  if (const auto provided = provided_file(path)) {
    std::istringstream in(*provided);
    return content_of(in, path, holds, holds == FileHolds::text ? longest_text : longest_file);
  }
  const bool standard = path == "-";
  std::error_code ignored;
  if (!standard && fs::is_directory(path, ignored)) {
    throw UsageError(fmt::format("cannot read \"{}\": it is a folder", path));
  }
  std::ifstream file;
  if (!standard) file.open(path, std::ios::binary);
  if (!file) throw UsageError(fmt::format("cannot read \"{}\": {}", path, std::strerror(errno)));
  const bool is_text = holds == FileHolds::text;
  std::uint64_t most = is_text ? longest_text : longest_pipe;
  if (!standard && fs::is_regular_file(path, ignored)) {
    if (!is_text) most = longest_file;
    const std::uintmax_t size = fs::file_size(path, ignored);
    if (size > most && !ignored) {
      throw UsageError(fmt::format("cannot read \"{}\": it has {} bytes; at most {} are read", path,
                                   size, most));
    }
  }
  std::string content = content_of(standard ? std::cin : file, path, holds, most);
  if (standard && std::ferror(stdin) != 0) {
    throw UsageError(fmt::format("cannot read \"{}\": the read broke off", path));
  }
  return content;
}

}  // namespace

std::string end_of_links(const std::string& from) {
  constexpr int longest_chain = 40;  // as in the kernel
  fs::path path = from;
  std::error_code error;
  for (int i = 0; i < longest_chain && fs::is_symlink(path, error); ++i) {
    path = path.parent_path() / fs::read_symlink(path, error);  // an absolute target replaces all
  }
  return path.string();
}

void keep_streams() { streams_are_kept = true; }
void show_standard_output() { output_is_shown = true; }

std::string read_file(const std::string& path, FileHolds holds) {
  std::error_code ignored;
  if (!streams_are_kept || fs::is_regular_file(path, ignored)) return read_anew(path, holds);
  static std::mutex access;
  static std::map<std::string, std::string> kept;
  const std::lock_guard<std::mutex> held(access);
  const auto found = kept.find(path);
  return found != kept.end() ? found->second : kept[path] = read_anew(path, holds);
}

std::string read_text(const std::string& path) {
  return without_mark(read_file(path, FileHolds::text), path);
}

std::string read_beginning(const std::string& path, std::size_t most) {
  if (!is_regular_input(path)) return "";
  std::string text;
  if (const auto provided = provided_file(path)) {
    text = provided->substr(0, most);
  } else {
    std::ifstream in(path, std::ios::binary);
    text.resize(most);
    in.read(text.data(), static_cast<std::streamsize>(most));
    text.resize(as_size(in.gcount()));
  }
  return without_mark(std::move(text), path);
}

std::string without_mark(std::string text, const std::string& path) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (is_wide(text)) {
    throw UsageError(
        fmt::format("cannot read \"{}\": it is not in UTF-8, as its byte order mark says (UTF-16 "
                    "or UTF-32); save it as UTF-8",
                    path));
  }
  return text;
}

void write_file(const std::string& path, const std::string& content) {
  if (path == "-" || is_standard_output(path)) {
    errno = 0;
    std::cout << (output_is_shown ? visible_lines(content) : content) << std::flush;
    if (!std::cout) throw std::system_error(errno, std::generic_category(), "standard output");
    return;
  }
  const std::optional<std::string> failure = write_to(path, content);
  if (failure) throw UsageError(fmt::format("cannot write \"{}\": {}", path, *failure));
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw UsageError(fmt::format("cannot make the folder {}: {}", path, error.message()));
}

void check_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    throw UsageError(fmt::format("cannot write \"{}\": it is a folder", path));
  }
  const bool file = fs::is_regular_file(status);
  if (fs::exists(status) && ::access(path.c_str(), W_OK) != 0) {
    throw UsageError(fmt::format("cannot write \"{}\": {}", path, std::strerror(errno)));
  }
  if (fs::exists(status) && !file) return;  // a device or FIFO
  const fs::path parent = fs::path(end_of_links(path)).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!fs::exists(folder, error)) {
    throw UsageError(fmt::format("cannot write \"{}\": there is no folder \"{}\"", path, folder));
  }
  if (!fs::is_directory(folder, error)) {
    throw UsageError(fmt::format("cannot write \"{}\": \"{}\" is not a folder", path, folder));
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    throw UsageError(fmt::format("cannot write \"{}\": {}", path, std::strerror(errno)));
  }
}

void check_folder(const std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  fs::path there = fs::absolute(path, error);
  while (!fs::exists(there, error) && there != there.parent_path()) there = there.parent_path();
  if (!fs::is_directory(there, error)) {
    throw UsageError(
        fmt::format("cannot make the folder {}: \"{}\" is not a folder", path, there.string()));
  }
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    throw UsageError(fmt::format("cannot write to the folder {}: {}", path, std::strerror(errno)));
  }
}

}  // namespace stageline
