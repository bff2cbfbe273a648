// The main() of every program: parses flags, handles signals, reports errors, returns exit codes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "tools/commands/flags.hpp"

namespace stageline {

struct ProgramMain {
  std::string name;   // "stageline-study", before each error
  std::string about;  // first line of --help
  /// Error message when memory runs out.
  std::string no_memory =
      "there is not enough memory for that many micro-batches, steps or devices";
};

/// Declares the flags by `add`, parses them and runs the function that `add` passed to
/// Flags::runs(). Every exception is reported as one sentence on standard error. Returns the exit
/// code: what the command returned; 2 where the input is bad or the output was lost; 3 where an
/// answer contradicts itself, a defect of Stageline; 128 and the signal after Interrupted (130 for
/// SIGINT, 143 for SIGTERM).
int program_main(const ProgramMain& program, int argc, const char* const* argv,
                 const std::function<void(Flags)>& add);

/// Thrown by a command that a signal interrupted.
struct Interrupted {
  std::string consequence;      // "nothing was written"
  bool after_progress = false;  // an unfinished line of progress is on standard error
};

/// Whether a system call that waits continues after a signal or fails with EINTR.
enum class Waiting : std::uint8_t { goes_on, ends };

/// Installs handlers: SIGINT and SIGTERM set the returned flag instead of ending the process. With
/// Waiting::ends only the first time: the second ends it, wherever it is.
const std::atomic<bool>& catch_signals(Waiting waiting);

/// 128 and the first signal: of a command that a signal ended early, with part of the answer.
int exit_code_after_signal();

/// For programs of which a single step may take long: a process that has not ended
/// `signal_patience` after the first signal prints `last_words` and exits with 128 and the signal,
/// whatever its threads do. Call it behind catch_signals().
inline constexpr std::chrono::milliseconds signal_patience{600};
void end_soon_after_signal(const std::string& last_words);
/// Withdraws end_soon_after_signal() while it lives: files are being written.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

}  // namespace stageline
