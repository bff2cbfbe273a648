#include "tools/base/files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <random>
#include <sstream>
#include <system_error>
#include <vector>

#include "sim/errors.hpp"
#include "sim/index.hpp"
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

// A new file in the folder: without a name where the file system can, so that nothing stays of a
// writer that is killed.
struct NewFile {
  std::FILE* out = nullptr;
  bool named = false;  // `beside`
};

NewFile open_new(const fs::path& folder, const fs::path& beside) {
  constexpr mode_t all = 0666;  // less the process's mask
  const int unnamed = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY, all);
  if (unnamed >= 0) return {::fdopen(unnamed, "wb"), false};
  return {std::fopen(beside.c_str(), "wbx"), true};  // follows no link that stands there
}

std::optional<std::string> replace(const fs::path& target, const std::string& content) {
  std::error_code error;
  const fs::file_status before = fs::status(target, error);
  if (fs::exists(before) && ::access(target.c_str(), W_OK) != 0) return std::strerror(errno);
  // Processes of several machines may have one number, and threads of a process write, too.
  const fs::path beside =
      fs::path(target).concat(fmt::format(".{}-{:08x}.tmp", ::getpid(), std::random_device{}()));
  const NewFile file = open_new(target.parent_path(), beside);
  if (file.out == nullptr) return std::strerror(errno);
  const int descriptor = fileno(file.out);
  int reason = 0;
  const auto attempt = [&reason](bool done) {
    if (!done && reason == 0) reason = errno;
  };
  const bool written = std::fwrite(content.data(), 1, content.size(), file.out) == content.size();
  attempt(written && std::fflush(file.out) == 0);
  if (fs::exists(before)) {
    attempt(::fchmod(descriptor, static_cast<mode_t>(before.permissions())) == 0);
  }
  bool named = file.named;
  if (reason == 0 && !named) {  // only now, for as long as a rename takes
    const std::string link = fmt::format("/proc/self/fd/{}", descriptor);
    named = ::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, beside.c_str(), AT_SYMLINK_FOLLOW) == 0;
    attempt(named);
  }
  attempt(std::fclose(file.out) == 0);
  if (reason == 0) attempt(std::rename(beside.c_str(), target.c_str()) == 0);
  std::error_code ignored;
  if (reason != 0 && named) fs::remove(beside, ignored);
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
  std::vector<char> block(std::size_t{1} << 20U);
  while (in.read(block.data(), std::ssize(block)) || in.gcount() > 0) {
    const std::string_view part(block.data(), as_size(in.gcount()));
    const bool text =
        holds == FileHolds::text || (holds == FileHolds::text_or_gzip &&
                                     !(content.empty() ? part : content).starts_with("\x1f\x8b"));
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

std::string read_file(const std::string& path, FileHolds holds) {
  if (const auto provided = provided_file(path)) {
    std::istringstream in(*provided);
    return content_of(in, path, holds, longest_file);
  }
  const bool standard = path == "-";
  std::error_code ignored;
  if (!standard && fs::is_directory(path, ignored)) {
    throw UsageError(fmt::format("cannot read \"{}\": it is a folder", path));
  }
  std::ifstream file;
  if (!standard) file.open(path, std::ios::binary);
  if (!file) throw UsageError(fmt::format("cannot read \"{}\": {}", path, std::strerror(errno)));
  std::uint64_t most = longest_pipe;
  if (!standard && fs::is_regular_file(path, ignored)) {
    most = longest_file;
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

std::string read_text(const std::string& path) {
  return without_mark(read_file(path, FileHolds::text), path);
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
    std::cout << content << std::flush;
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
