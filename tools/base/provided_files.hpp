// Contents that stand in for files of this machine: a worker reads what its caller has, wherever
// that is.
#pragma once

#include <map>
#include <memory>
#include <string>

namespace stageline {

/// While it lives, all threads read these contents, by path as it is named, and not the files of
/// this machine; of several for a path the latest that was made.
class ProvidedFiles {
 public:
  using Contents = std::map<std::string, std::string>;
  explicit ProvidedFiles(Contents contents);
  ~ProvidedFiles();
  ProvidedFiles(const ProvidedFiles&) = delete;
  ProvidedFiles& operator=(const ProvidedFiles&) = delete;
  ProvidedFiles(ProvidedFiles&&) = delete;
  ProvidedFiles& operator=(ProvidedFiles&&) = delete;

 private:
  std::map<std::string, std::shared_ptr<const std::string>> contents_;
  friend std::shared_ptr<const std::string> provided_file(const std::string& path);
};

/// Null: none stands in for that file.
std::shared_ptr<const std::string> provided_file(const std::string& path);

/// Whether that is a regular file, or one that is provided.
bool is_regular_input(const std::string& path);

}  // namespace stageline
