// Dates and warnings for the programs of the executor.
#include "tools/executor/programs/run_notes.hpp"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <string_view>

#include "tools/executor/processes/tell.hpp"

namespace stageline::executor {

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

std::string command_of(const std::string& program, int argc, const char* const* argv,
                       const std::vector<std::string>& outputs) {
  std::string command = program;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto is_output = [&](const std::string& flag) { return word.rfind(flag, 0) == 0; };
    const auto output = std::find_if(outputs.begin(), outputs.end(), is_output);
    if (output != outputs.end()) {
      if (word == *output) ++i;  // its value
      continue;
    }
    if (!outputs.empty() && word == "--quiet") continue;
    command += fmt::format(" {}", word);
  }
  return command;
}

void print_warnings(const std::vector<std::string>& warned, const ProcessReport& process) {
  for (const std::string& warning : warned) tell("warning: {}\n", warning);
  for (const std::string& warning : warnings(process)) {
    tell("warning: {}\n", warning);
  }
}

}  // namespace stageline::executor
