// The main() of every program: parses flags, handles signals, reports errors, returns exit codes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "tools/commands/flags.hpp"

namespace stageline::cli {

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
/// answer contradicts itself, a defect of Stageline; 128 and the signal after Interrupted and
/// NothingKnown (130 for SIGINT, 143 for SIGTERM).
int program_main(const ProgramMain& program, int argc, const char* const* argv,
                 const std::function<void(Flags)>& add);

/// Thrown by a command that a signal interrupted.
struct Interrupted {
  std::string consequence;      // "nothing was written"
  bool after_progress = false;  // an unfinished line of progress is on standard error
};

/// What a second signal does: nothing more than the first, or it ends the process, wherever it is.
enum class SecondSignal : std::uint8_t { ignored, ends };

/// Installs handlers: SIGINT and SIGTERM set the returned flag instead of ending the process. One
/// that is ignored, as SIGINT is in what a script starts with &, stays so. System calls go on.
const std::atomic<bool>& catch_signals(SecondSignal second);

/// 128 and the first signal: of a command that a signal ended early, with part of the answer.
int exit_code_after_signal();

/// For programs of which a single step may take long: a process that has not ended
/// `signal_patience` after the first signal prints `last_words` and exits with 128 and the signal,
/// whatever its threads do. Call it behind catch_signals().
inline constexpr std::chrono::milliseconds signal_patience{600};
void end_soon_after_signal(const std::string& last_words);
/// To be called once the results are there: withdraws end_soon_after_signal(), since "nothing was
/// written" is no longer true. A signal lets the files be written; a second one ends the process.
void let_results_be_written();

}  // namespace stageline::cli
