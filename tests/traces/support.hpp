// What the tests of traces/ share.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "sim/base/errors.hpp"

namespace stageline {

inline std::optional<std::string> file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A file of the source tree; its root is STAGELINE_SOURCE or follows from where this header is.
inline std::string source_text(const std::string& relative) {
  const char* const root = std::getenv("STAGELINE_SOURCE");
  const std::filesystem::path base =
      root != nullptr ? std::filesystem::path(root)
                      : std::filesystem::path(__FILE__).parent_path() / ".." / "..";
  const std::optional<std::string> text = file_text(base / relative);
  REQUIRE_MESSAGE(text.has_value(), "cannot read ", (base / relative).string());
  return *text;
}

/// The TraceError that `run` throws; `where` is "nothing was thrown" when there is none.
template <class Run>
TraceError trace_error_of(Run run) {
  try {
    run();
  } catch (const TraceError& error) {
    return error;
  }
  return {"", "nothing was thrown", ""};
}

/// The text of the UsageError that `run` throws.
template <class Run>
std::string usage_error_of(Run run) {
  try {
    run();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// `text` with its first `from` replaced; fails when there is none.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, "no ", from);
  return text.replace(at, from.size(), to);
}

}  // namespace stageline
