#include "tests/questions/ask.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

#include "sim/base/index.hpp"
#include "tools/commands/command_line.hpp"

namespace stageline::test {
namespace {

// A stream of this process, led into memory while it lives.
class Caught {
 public:
  explicit Caught(int stream)
      : stream_(stream), before_(::dup(stream)), file_(::memfd_create("caught", 0)) {
    if (before_ < 0 || file_ < 0 || ::dup2(file_, stream_) < 0) {
      throw std::runtime_error("a stream cannot be caught");
    }
  }
  ~Caught() {
    ::dup2(before_, stream_);
    ::close(before_);
    ::close(file_);
  }
  Caught(const Caught&) = delete;
  Caught& operator=(const Caught&) = delete;

  std::string text() const {
    std::string all(as_size(::lseek(file_, 0, SEEK_END)), '\0');
    const ssize_t got = ::pread(file_, all.data(), all.size(), 0);
    if (got != static_cast<ssize_t>(all.size())) throw std::runtime_error("a stream was lost");
    return all;
  }

 private:
  int stream_;
  int before_;
  int file_;
};

}  // namespace

Answer ask(const std::vector<std::string>& words) {
  std::vector<const char*> arguments{"stageline"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::fflush(stdout);
  std::fflush(stderr);
  const Caught out(1);
  const Caught err(2);
  Answer answer;
  answer.exit_code = cli::run_command_line(static_cast<int>(arguments.size()), arguments.data());
  std::fflush(stdout);
  std::fflush(stderr);
  answer.out = out.text();
  answer.err = err.text();
  return answer;
}

std::string typed(const std::vector<std::string>& words) {
  std::string line = "stageline";
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_of(" |*'\"") == std::string::npos;
    line += plain ? " " + word : " '" + word + "'";
  }
  return line;
}

}  // namespace stageline::test
