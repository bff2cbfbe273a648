#include "tools/base/provided_files.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

namespace stageline {
namespace {

thread_local const ProvidedFiles* latest = nullptr;

}  // namespace

ProvidedFiles::ProvidedFiles(FileContents contents)
    : contents_(std::move(contents)), before_(latest) {
  latest = this;
}

ProvidedFiles::ProvidedFiles(Contents contents) : ProvidedFiles(FileContents{}) {
  for (auto& [path, content] : contents) {
    contents_[path] = std::make_shared<const std::string>(std::move(content));
  }
}

ProvidedFiles::~ProvidedFiles() { latest = before_; }

const ProvidedFiles* provided_files() { return latest; }

ReadsProvided::ReadsProvided(const ProvidedFiles* files) : before_(latest) { latest = files; }

ReadsProvided::~ReadsProvided() { latest = before_; }

std::shared_ptr<const std::string> provided_file(const std::string& path) {
  for (const ProvidedFiles* one = latest; one != nullptr; one = one->before_) {
    const auto found = one->contents_.find(path);
    if (found != one->contents_.end()) return found->second;
  }
  return nullptr;
}

bool is_regular_input(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) || provided_file(path);
}

}  // namespace stageline
