// What is fuzzed: a table of targets, each a call on bytes. A reader is a line of the table in
// readers.cpp, a deeper target a file of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stageline::fuzz {

/// How inputs are mutated beside libFuzzer's own ways.
enum class Form : std::uint8_t {
  bytes,  // not at all
  text,   // by lines, words and numbers
  json,   // by values
};

struct Target {
  std::string_view name;
  Form form = Form::bytes;
  /// Returns, or throws one of the project's errors; anything else is a finding.
  void (*call)(const std::string& input) = nullptr;
};

std::span<const Target> readers();

// program.cpp
void text_and_back(const std::string& input);
void run_program_text(const std::string& input);
void write_program_text(const std::string& input);
// engines.cpp
void random_program(const std::string& input);
// questions.cpp
void schedules(const std::string& input);
void study_of_trace(const std::string& input);

/// Ends the process with `message`, as a finding.
[[noreturn]] void broken(const std::string& message);
inline void hold(bool holds, const char* what) {
  if (!holds) broken(what);
}

}  // namespace stageline::fuzz
