// A test program that starts itself again, to have other processes to talk to. What they do is a
// test case that is skipped unless asked for:
//
//     TEST_CASE("as a peer: vanish" * doctest::skip()) { … }
//     Spawned peer("as a peer: vanish", {{"RANK", "1"}});
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline::executor {

using Variables = std::map<std::string, std::string>;

class Spawned {
 public:
  explicit Spawned(const std::string& test_case, const Variables& variables = {}) {
    std::vector<std::string> words = {"test", "--no-skip", "--test-case=" + test_case};
    std::vector<std::string> settings;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (!variables.contains(text.substr(0, text.find('=')))) settings.push_back(text);
    }
    for (const auto& [name, value] : variables) settings.push_back(name + '=' + value);
    std::vector<char*> arguments, environment;
    for (std::string& word : words) arguments.push_back(word.data());
    for (std::string& setting : settings) environment.push_back(setting.data());
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    process_ = ::fork();
    if (process_ < 0) throw std::runtime_error("no process");
    if (process_ == 0) {
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
      const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      ::dup2(nothing, STDIN_FILENO);
      ::dup2(nothing, STDOUT_FILENO);
      ::dup2(ends[1], STDERR_FILENO);
      ::execve("/proc/self/exe", arguments.data(), environment.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    errors_ = ends[0];
  }
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;
  ~Spawned() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      wait();
    }
    ::close(errors_);
  }

  pid_t process() const { return process_; }
  void kill(int signal) const { ::kill(process_, signal); }

  /// The exit code, or 128 and the signal.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(process_, -1), &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  /// All of its standard error; waits until nobody can write there any more.
  std::string errors() const {
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t count = 0; (count = ::read(errors_, part.data(), part.size())) > 0;)
      text.append(part.data(), as_size(count));
    return text;
  }

 private:
  pid_t process_ = -1;
  int errors_ = -1;
};

/// A port that is free now.
inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no port");
  }
  ::close(socket);
  return ntohs(address.sin_port);
}

}  // namespace stageline::executor
