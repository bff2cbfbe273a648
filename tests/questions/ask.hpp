// One run of the command inside this process: the words typed, and what came back.
#pragma once

#include <string>
#include <vector>

namespace stageline::test {

struct Answer {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Runs `stageline WORDS…` with standard output and error caught. Throws std::runtime_error where
/// they cannot be.
Answer ask(const std::vector<std::string>& words);

/// The words as one would type them.
std::string typed(const std::vector<std::string>& words);

}  // namespace stageline::test
