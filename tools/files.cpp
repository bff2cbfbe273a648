#include "tools/files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "sim/errors.hpp"

namespace stageline {

std::string read_file(const std::string& path) {
  if (path == "-") {
    return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw UsageError(fmt::format("cannot read \"{}\": it is a folder", path));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UsageError(fmt::format("cannot read \"{}\": {}", path, std::strerror(errno)));
  std::string content{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) throw UsageError(fmt::format("cannot read \"{}\": the read broke off", path));
  return content;
}

void write_file(const std::string& path, const std::string& content) {
  if (path == "-") {
    std::cout << content << std::flush;
    return;
  }
  namespace fs = std::filesystem;
  const fs::path target(path);
  const fs::path beside = fs::path(path).concat(fmt::format(".{}.tmp", ::getpid()));
  std::error_code error;
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), error);
  const auto refuse = [&](const std::string& reason) {
    std::error_code ignored;
    fs::remove(beside, ignored);
    throw UsageError(fmt::format("cannot write \"{}\": {}", path, reason));
  };
  if (fs::is_directory(target, error)) refuse("it is a folder");
  {
    std::ofstream out(beside, std::ios::binary);
    if (!out) refuse(std::strerror(errno));
    out << content;
    out.close();
    if (!out) refuse(std::strerror(errno));
  }
  fs::rename(beside, target, error);
  if (error) refuse(error.message());
}

}  // namespace stageline
