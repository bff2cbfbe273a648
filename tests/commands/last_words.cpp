// Does an interrupted program speak once, also where its end takes longer than the patience?
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tools/commands/program_main.hpp"

namespace stageline::last_words_tests {
namespace {

// Longer than what a std::string holds without memory of its own.
constexpr const char* last_words = "program: interrupted, and this text has a place of its own\n";

// Constructed before the statics of our libraries, so that they are gone when it lingers.
struct Lingers {
  bool asked = false;
  ~Lingers() {
    if (asked) std::this_thread::sleep_for(3 * cli::signal_patience);
  }
} lingers;

struct End {
  int code = -1;
  std::string said;
};

/// A process that gets SIGTERM, ends as `end` does, and lingers. What it said on standard error.
End end_of(int (*end)()) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    lingers.asked = true;
    const char* const words[] = {"program"};
    std::exit(cli::program_main({"program", "A program"}, 1, words, [&](cli::Flags flags) {
      flags.runs([end] {
        cli::catch_signals(cli::SecondSignal::ignored);
        cli::end_soon_after_signal(last_words);
        std::raise(SIGTERM);
        return end();
      });
    }));
  }
  ::close(ends[1]);
  End found;
  char bytes[256];
  for (ssize_t some = 0; (some = ::read(ends[0], bytes, sizeof bytes)) > 0;) {
    found.said.append(bytes, static_cast<std::size_t>(some));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) found.code = WEXITSTATUS(status);
  return found;
}

TEST_CASE("a program that was interrupted says so once, however long its end takes") {
  const End end = end_of([]() -> int { throw cli::Interrupted{"nothing was written"}; });
  CHECK(end.said == "program: interrupted; nothing was written\n");
  CHECK(end.code == 128 + SIGTERM);
}

TEST_CASE("a program that had its result when the signal came ends as if none had") {
  const End end = end_of([] { return 0; });
  CHECK(end.said.empty());
  CHECK(end.code == 0);
}

TEST_CASE("a program that goes on is ended with its last words") {
  const End end = end_of([] {
    std::this_thread::sleep_for(100 * cli::signal_patience);
    return 0;
  });
  CHECK(end.said == last_words);
  CHECK(end.code == 128 + SIGTERM);
}

}  // namespace
}  // namespace stageline::last_words_tests
