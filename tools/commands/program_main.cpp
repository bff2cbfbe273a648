// Runs a command line and reports errors as one sentence and an exit code.
#include "tools/commands/program_main.hpp"

#include <fmt/core.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string_view>
#include <system_error>

#include "sim/base/errors.hpp"
#include "sim/base/pages.hpp"
#include "sim/deadlock.hpp"
#include "sim/text/visible.hpp"
#include "tools/answers/question.hpp"
#include "tools/base/files.hpp"
#include "tools/base/version.hpp"
#include "tools/study/figures/contradictions.hpp"

namespace stageline::cli {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<int> first_signal{0};
std::atomic<bool> ends_soon{false};  // a second after the first signal, unless files are written
// Fixed before ends_soon is set. Never destroyed: the handler may run while statics are.
const std::string* last_words = nullptr;
std::atomic<bool> said_last_words{false};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void begin_to_wait() {
  itimerval after{};
  after.it_value.tv_usec = std::chrono::microseconds(signal_patience).count();
  ::setitimer(ITIMER_REAL, &after, nullptr);
}

// fmt::print would throw where standard error is full or closed.
void complain(const std::string& text) { std::fputs(visible_lines(text).c_str(), stderr); }

class Ending {
 public:
  explicit Ending(const ProgramMain& program) : program_(program) {}

  int refuse(std::string_view message, const std::string& figure = "") const {
    complain(fmt::format("{}: {}\n", program_.name, message));
    if (!figure.empty()) complain("\n" + figure);
    return 2;
  }

  // A message of ours is one line, whatever the names in it.
  int refuse_all(std::string_view message, const std::string& figure = "") const {
    return refuse(visible(message), figure);
  }

  // Messages of other libraries may continue with a stack trace.
  int refuse_first_line(std::string_view message) const {
    return refuse(message.substr(0, message.find('\n')));
  }

  // `reason` is an errno. No message for a closed pipe (`| head`).
  int lost_output(int reason) const {
    if (reason == EPIPE) return 2;
    return refuse(fmt::format("cannot write to standard output: {}",
                              reason != 0 ? std::strerror(reason) : "a write failed"));
  }

  // The exit code, unless output was lost: that must not look like success.
  int after_flushing(int exit_code) const {
    const int before = errno;  // of the flush after --help, which reports no error
    if (std::fflush(stdout) != 0) return lost_output(errno);
    std::cout.flush();
    return std::ferror(stdout) != 0 || std::cout.bad() ? lost_output(before) : exit_code;
  }

  // The process still ends soon, should a static's destructor take long, but speaks once.
  int interrupted(const Interrupted& by) const {
    if (ends_soon) begin_to_wait();
    if (said_last_words.exchange(true)) return exit_code_after_signal();
    complain(fmt::format("{}{}: interrupted; {}\n", by.after_progress ? "\n" : "", program_.name,
                         by.consequence));
    return exit_code_after_signal();
  }

 private:
  const ProgramMain& program_;
};

// Handlers: only calls that are safe in one.
void on_signal(int signal) {
  int none = 0;
  const bool first = first_signal.compare_exchange_strong(none, signal);
  interrupted = true;
  if (first && ends_soon) begin_to_wait();
}

// But for those that are ignored.
void handle_signals(void (*handler)(int), int flags) {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    ::sigaction(signal, &action, nullptr);
  }
}

void on_end_of_patience(int) {
  if (!ends_soon) return;
  if (!said_last_words.exchange(true)) {
    [[maybe_unused]] const auto written =
        ::write(STDERR_FILENO, last_words->data(), last_words->size());
  }
  ::_exit(exit_code_after_signal());
}

}  // namespace

int exit_code_after_signal() {
  const int by = first_signal;
  return 128 + (by != 0 ? by : SIGINT);
}

const std::atomic<bool>& catch_signals(SecondSignal second) {
  if (interrupted) return interrupted;  // the second signal is to end the process
  const bool once = second == SecondSignal::ends;
  handle_signals(on_signal, SA_RESTART | (once ? static_cast<int>(SA_RESETHAND) : 0));
  return interrupted;
}

void end_soon_after_signal(const std::string& words) {
  // What a handler may be reading stays.
  if (last_words == nullptr || *last_words != words) last_words = new std::string(words);
  struct sigaction action {};
  action.sa_handler = on_end_of_patience;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  ends_soon = true;
  if (interrupted) begin_to_wait();  // by a signal that came before
}

void let_results_be_written() {
  ends_soon = false;
  handle_signals(interrupted ? SIG_DFL : on_signal, SA_RESTART | static_cast<int>(SA_RESETHAND));
}

namespace {

// All ends but those by signals.
int exit_code_of(const ProgramMain& program, const Ending& ending, int argc,
                 const char* const* argv, const std::function<void(Flags)>& add) {
  try {
    CommandLine line(program.name, program.about, std::string(version()));
    add(line.flags());
    return ending.after_flushing(line.run(argc, argv));
  } catch (const ProgramError& error) {
    return ending.refuse_all(error.what(), error.figure);
  } catch (const Deadlock& error) {
    return ending.refuse_all(error.what(), error.figure);
  } catch (const ContradictionError& error) {
    ending.refuse(error.what());
    return 3;
  } catch (const UsageError& error) {
    return ending.refuse_all(error.what());
  } catch (const TraceError& error) {
    return ending.refuse_all(error.what());
  } catch (const CommandLineError& error) {
    return ending.refuse_all(error.what());
  } catch (const std::bad_alloc&) {
    return ending.refuse(program.no_memory);
  } catch (const std::system_error& error) {  // of fmt::print and write_file
    return std::ferror(stdout) != 0 ? ending.lost_output(error.code().value())
                                    : ending.refuse_first_line(error.what());
  } catch (const std::exception& error) {
    return ending.refuse_first_line(error.what());
  }
}

}  // namespace

int program_main(const ProgramMain& program, int argc, const char* const* argv,
                 const std::function<void(Flags)>& add) {
  const Ending ending(program);
  keep_freed_memory();
  keep_streams();
  if (::isatty(STDOUT_FILENO) == 1) show_standard_output();
  std::signal(SIGCHLD, SIG_DFL);  // inherited as ignored, it would hide how a child ended
  try {
    const int code = exit_code_of(program, ending, argc, argv, add);
    ends_soon = false;  // it has its result or its error: the last words would be wrong
    return code;
  } catch (const answers::NothingKnown& nothing) {
    return ending.interrupted({nothing.why + ", nothing was written", false});
  } catch (const Interrupted& by) {
    return ending.interrupted(by);
  }
}

}  // namespace stageline::cli
