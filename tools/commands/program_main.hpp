// main() of every program: flags, signals, errors as one sentence, exit codes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "tools/commands/flags.hpp"

namespace stageline {

struct ProgramMain {
  std::string name;     // "stageline-study", before each error
  std::string about;    // first line of --help
  std::string version;  // of --version
  /// When memory runs out.
  std::string no_memory =
      "there is not enough memory for that many micro-batches, steps or devices";
};

/// Declares the flags by `add`, parses them and runs what `add` gave to Flags::runs(). Every
/// exception ends as one sentence on standard error. Returns the exit code: what the command
/// returned; 2 where the input is bad or the output was lost; 3 where an answer contradicts itself,
/// a defect of Stageline; 130 after Interrupted.
int program_main(const ProgramMain& program, int argc, const char* const* argv,
                 const std::function<void(Flags)>& add);

/// Thrown by a command that a signal has ended.
struct Interrupted {
  std::string consequence;      // "nothing was written"
  bool after_progress = false;  // a line of progress is open on standard error
};

/// What a signal does to a system call that waits.
enum class Waiting : std::uint8_t { goes_on, ends };

/// From now on SIGINT and SIGTERM set the flag that is returned, and no longer end the process.
const std::atomic<bool>& catch_signals(Waiting waiting);

}  // namespace stageline
