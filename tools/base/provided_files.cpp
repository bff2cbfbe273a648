#include "tools/base/provided_files.hpp"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace stageline {
namespace {

std::mutex& access() {
  static std::mutex one;
  return one;
}

std::vector<const ProvidedFiles*>& all_provided() {
  static std::vector<const ProvidedFiles*> all;  // the latest last
  return all;
}

}  // namespace

ProvidedFiles::ProvidedFiles(Contents contents) {
  for (auto& [path, content] : contents) {
    contents_[path] = std::make_shared<const std::string>(std::move(content));
  }
  const std::lock_guard<std::mutex> held(access());
  all_provided().push_back(this);
}

ProvidedFiles::~ProvidedFiles() {
  const std::lock_guard<std::mutex> held(access());
  std::erase(all_provided(), this);
}

std::shared_ptr<const std::string> provided_file(const std::string& path) {
  const std::lock_guard<std::mutex> held(access());
  const std::vector<const ProvidedFiles*>& all = all_provided();
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    const auto found = (*one)->contents_.find(path);
    if (found != (*one)->contents_.end()) return found->second;
  }
  return nullptr;
}

bool is_regular_input(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) || provided_file(path);
}

}  // namespace stageline
