// Dates and warnings for the programs of the executor.
#include "tools/executor/programs/run_notes.hpp"

#include <fmt/chrono.h>

#include <cstdio>
#include <ctime>

namespace stageline::executor {

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

void print_warnings(const std::vector<std::string>& warned, const ProcessReport& process) {
  for (const std::string& warning : warned) fmt::print(stderr, "warning: {}\n", warning);
  for (const std::string& warning : warnings(process)) {
    fmt::print(stderr, "warning: {}\n", warning);
  }
}

}  // namespace stageline::executor
