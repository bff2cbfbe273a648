// Compares the files of a command line before it runs.
#include "tools/base/outputs.hpp"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"

namespace stageline {
namespace {

namespace fs = std::filesystem;

// Whether something else than a file stands there, which can be written any number of times.
bool is_stream(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return path == "-" || (fs::exists(status) && !fs::is_regular_file(status));
}

// Where a file is or will be: absolute, without links, dots and a slash at its end. Empty: unknown.
fs::path place_of(const std::string& path) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(fs::absolute(end_of_links(path), error), error);
  if (error) return {};
  return place.has_filename() ? place : place.parent_path();
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::exists(a, error) && fs::exists(b, error)) return fs::equivalent(a, b, error);
  const fs::path place = place_of(a);
  return !place.empty() && place == place_of(b);
}

// The parts of a word that may name a file: "model:config.json@h100,batch=8", "cluster.json*4",
// "a.json,b.json". A name may hold some of what divides words.
std::vector<std::string> files_in(const std::string& word) {
  constexpr std::string_view between = ",:@=*|";
  constexpr std::size_t most_joined = 4;
  std::vector<std::size_t> begins{0};
  for (std::size_t at = 0; (at = word.find_first_of(between, at)) != std::string::npos; ++at) {
    begins.push_back(at + 1);
  }
  begins.push_back(word.size() + 1);
  std::vector<std::string> files;
  const auto add = [&files](std::string part) {
    std::error_code error;
    if (!part.empty() && fs::is_regular_file(part, error)) files.push_back(std::move(part));
  };
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    for (std::size_t k = i + 1; k < std::min(begins.size(), i + 1 + most_joined); ++k) {
      add(word.substr(begins[i], begins[k] - 1 - begins[i]));
    }
  }
  if (begins.size() > most_joined + 1) add(word);
  return files;
}

bool is_matched(const fs::path& pattern, const fs::path& name) {
  return ::fnmatch(pattern.filename().c_str(), name.filename().c_str(), 0) == 0;
}

// Whether the file is one of the pattern's, or another name of one that is there.
bool matches(const fs::path& pattern, const std::string& file) {
  const fs::path folder = pattern.has_parent_path() ? pattern.parent_path() : fs::path(".");
  const fs::path end = end_of_links(file);
  const fs::path parent = end.has_parent_path() ? end.parent_path() : fs::path(".");
  if (is_matched(pattern, end) && same_file(folder.string(), parent.string())) return true;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), none; !error && at != none; at.increment(error)) {
    if (is_matched(pattern, at->path()) && same_file(at->path().string(), file)) return true;
  }
  return false;
}

// Calls use(file, flag) with each file that the command reads.
template <class Use>
void for_inputs(const CommandPaths& paths, Use&& use) {
  for (const NamedPath& word : paths.words) {
    for (const std::string& file : files_in(word.path)) use(file, word.flag);
  }
}

[[noreturn]] void refuse_input(const std::string& output, const std::string& file,
                               const std::string& input) {
  throw UsageError(fmt::format("{} would overwrite \"{}\", which {} reads; write another file",
                               output, file, input));
}

void check_file(const CommandPaths& paths, std::size_t number) {
  const NamedPath& output = paths.files[number];
  check_writable(output.path);
  if (output.path.empty() || is_stream(output.path)) return;
  for (std::size_t k = 0; k < number; ++k) {
    const NamedPath& other = paths.files[k];
    if (other.path.empty() || !same_file(other.path, output.path)) continue;
    throw UsageError(fmt::format("{} and {} write the same file, \"{}\"; give each its own",
                                 other.flag, output.flag, output.path));
  }
  for_inputs(paths, [&](const std::string& file, const std::string& input) {
    if (same_file(file, output.path)) refuse_input(output.flag, file, input);
  });
}

void check_pattern(const CommandPaths& paths, const NamedPath& pattern) {
  for (const NamedPath& output : paths.files) {
    if (output.path.empty() || is_stream(output.path)) continue;
    if (!matches(pattern.path, output.path)) continue;
    throw UsageError(fmt::format("{} and {} write the same file, \"{}\"; give it another name",
                                 pattern.flag, output.flag, output.path));
  }
  for_inputs(paths, [&](const std::string& file, const std::string& input) {
    if (matches(pattern.path, file)) refuse_input(pattern.flag, file, input);
  });
}

void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

std::string literal_pattern(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

std::string pattern_of(const std::string& form, const std::string& given) {
  // Only the name is a pattern: a folder's name stands for itself.
  const fs::path path(given);
  const fs::path unpacked = path.extension() == ".gz" ? path.stem() : path;
  const bool folder = form.find("{}/") != std::string::npos;
  const std::string lead = path.has_parent_path() ? path.parent_path().string() + "/" : "";
  std::string text = form;
  replace_all(text, "{stem}", lead + literal_pattern(unpacked.stem().string()));
  replace_all(text, "{}", folder ? given : lead + literal_pattern(path.filename().string()));
  return text;
}

void check_outputs(const CommandPaths& paths) {
  for (std::size_t i = 0; i < paths.files.size(); ++i) check_file(paths, i);
  for (const NamedPath& folder : paths.folders) check_folder(folder.path);
  for (const NamedPath& pattern : paths.patterns) check_pattern(paths, pattern);
}

}  // namespace stageline
