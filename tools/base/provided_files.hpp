// Contents that stand in for files of this machine: a worker reads what its caller has, wherever
// that is.
#pragma once

#include <map>
#include <memory>
#include <string>

namespace stageline {

/// What files hold, by path.
using FileContents = std::map<std::string, std::shared_ptr<const std::string>>;

/// While it lives, this thread and those that help it (tools/base/parallel.hpp) read these
/// contents, by path as it is named, and not the files of this machine; of several for a path the
/// latest that was made. Other threads do not: two callers may give one path different contents.
class ProvidedFiles {
 public:
  using Contents = std::map<std::string, std::string>;
  explicit ProvidedFiles(FileContents contents);
  explicit ProvidedFiles(Contents contents);
  /// In the thread that made it, and the latest first.
  ~ProvidedFiles();
  ProvidedFiles(const ProvidedFiles&) = delete;
  ProvidedFiles& operator=(const ProvidedFiles&) = delete;
  ProvidedFiles(ProvidedFiles&&) = delete;
  ProvidedFiles& operator=(ProvidedFiles&&) = delete;

 private:
  FileContents contents_;
  const ProvidedFiles* before_;
  friend std::shared_ptr<const std::string> provided_file(const std::string& path);
};

/// What this thread reads, for threads that help it; null: the files of this machine.
const ProvidedFiles* provided_files();

/// A thread that helps reads what its caller reads, as long as the object lives.
class ReadsProvided {
 public:
  explicit ReadsProvided(const ProvidedFiles* files);
  ~ReadsProvided();
  ReadsProvided(const ReadsProvided&) = delete;
  ReadsProvided& operator=(const ReadsProvided&) = delete;

 private:
  const ProvidedFiles* before_;
};

/// Null: none stands in for that file.
std::shared_ptr<const std::string> provided_file(const std::string& path);

/// Whether that is a regular file, or one that is provided.
bool is_regular_input(const std::string& path);

}  // namespace stageline
