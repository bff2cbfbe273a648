// Errors in user input, as exceptions with data. Each message is one sentence: subject, rule,
// numbers, place, hint. main() turns every one of them into exit code 2.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

/// A message for what(), which ends at a NUL: those of names in it become ␀.
std::string without_nul(std::string_view message);

/// A trace, cluster or profile that violates its format. `where` is a JSON pointer or "line 3".
struct TraceError : std::runtime_error {
  TraceError(std::string in_file, std::string at, const std::string& message)
      : std::runtime_error(without_nul(in_file + (at.empty() ? "" : " at " + at) + ": " + message)),
        file(std::move(in_file)),
        where(std::move(at)) {}
  std::string file;
  std::string where;
};

/// A program that violates a rule. `device` and `position` (in that device's list) are -1 where the
/// fault has no single place; `figure` is a drawn excerpt, or empty.
struct ProgramError : std::runtime_error {
  explicit ProgramError(const std::string& message, int on_device = -1, int at_position = -1,
                        std::string drawn = {})
      : std::runtime_error(without_nul(message)),
        device(on_device),
        position(at_position),
        figure(std::move(drawn)) {}
  int device;
  int position;
  std::string figure;
};

/// An invalid option, knob, name or combination ("8 devices need at least 8 layers").
struct UsageError : std::runtime_error {
  explicit UsageError(const std::string& message) : std::runtime_error(without_nul(message)) {}
};

/// The name in `known` nearest to `name` by edit distance, as ` (did you mean "X"?)`, or an empty
/// text.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& known);

}  // namespace stageline
