#include "tools/base/files.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <system_error>

#include "sim/errors.hpp"
#include "sim/index.hpp"

namespace stageline {
namespace {

namespace fs = std::filesystem;

// Where a chain of symbolic links ends, be there a file or not yet.
fs::path end_of_links(fs::path path) {
  constexpr int longest_chain = 40;  // as in the kernel
  std::error_code error;
  for (int i = 0; i < longest_chain && fs::is_symlink(path, error); ++i) {
    path = path.parent_path() / fs::read_symlink(path, error);  // an absolute target replaces all
  }
  return path;
}

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

std::optional<std::string> replace(const fs::path& target, const std::string& content) {
  std::error_code error;
  const fs::file_status before = fs::status(target, error);
  if (fs::exists(before) && ::access(target.c_str(), W_OK) != 0) return std::strerror(errno);
  const fs::path beside = fs::path(target).concat(fmt::format(".{}.tmp", ::getpid()));
  fs::remove(beside, error);                                 // of a killed run
  std::FILE* const out = std::fopen(beside.c_str(), "wbx");  // follows no link that stands there
  if (out == nullptr) return std::strerror(errno);
  error.clear();
  if (fs::exists(before)) fs::permissions(beside, before.permissions(), error);
  std::optional<std::string> failure = write_and_close(out, content);
  if (!failure && !error) fs::rename(beside, target, error);
  if (!failure && error) failure = error.message();
  std::error_code ignored;
  if (failure) fs::remove(beside, ignored);
  return failure;
}

std::optional<std::string> write_to(const fs::path& path, const std::string& content) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return "it is a folder";
  if (error && status.type() != fs::file_type::not_found) return error.message();
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_in_place(path, content);
  const fs::path target = end_of_links(path);
  const fs::path folder = target.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error)) {
    if (fs::exists(folder, error)) return fmt::format("\"{}\" is not a folder", folder.string());
    return fmt::format("there is no folder \"{}\"", folder.string());
  }
  return replace(target, content);
}

}  // namespace

std::string read_file(const std::string& path) {
  if (path == "-") {
    std::string content{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
    if (std::ferror(stdin) != 0) throw UsageError("cannot read \"-\": the read broke off");
    return content;
  }
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    throw UsageError(fmt::format("cannot read \"{}\": it is a folder", path));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UsageError(fmt::format("cannot read \"{}\": {}", path, std::strerror(errno)));
  std::string content;
  if (fs::is_regular_file(path, ignored)) {
    content.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  } else {  // a pipe, or a device that never ends
    constexpr std::size_t most = std::size_t{1} << 30;
    std::array<char, 1 << 16> block{};
    while (in.read(block.data(), block.size()) || in.gcount() > 0) {
      content.append(block.data(), as_size(in.gcount()));
      if (content.size() > most) {
        throw UsageError(
            fmt::format("cannot read \"{}\": it is no file and gives more than 1 GiB", path));
      }
    }
  }
  if (in.bad()) throw UsageError(fmt::format("cannot read \"{}\": the read broke off", path));
  return content;
}

std::string read_text(const std::string& path) { return without_mark(read_file(path), path); }

std::string without_mark(std::string text, const std::string& path) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") ||
      text.starts_with(std::string_view("\0\0\xFE\xFF", 4))) {
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
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!std::filesystem::is_directory(folder)) {
    throw UsageError(fmt::format("there is no folder {} to write {} to", folder, path));
  }
  if (::access(folder.c_str(), W_OK) != 0 || std::filesystem::is_directory(path)) {
    throw UsageError(fmt::format("{} cannot be written", path));
  }
}

}  // namespace stageline
