// Starts the ranks, watches them, and ends them when one fails.
#include "tools/executor/processes/launch.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/executor/processes/tell.hpp"

namespace stageline::executor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds to_end_by_themselves{5};  // after another has failed
constexpr std::chrono::seconds to_end_when_asked{2};     // by SIGTERM, before SIGKILL
constexpr Clock::time_point never = Clock::time_point::max();
constexpr std::size_t held_back = 1 << 16;  // bytes of standard error kept of a rank

[[noreturn]] void cannot(const std::string& what) {
  throw UsageError(fmt::format("{}: {}", what, std::strerror(errno)));
}

// A descriptor that is closed in the end.
class Handle {
 public:
  explicit Handle(int descriptor = -1) : descriptor_(descriptor) {}
  Handle(Handle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { close(); }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// A port of this machine that nobody else is given as long as the handle lives: bound, but not
// listened on, so that rank 0, which allows reuse as all servers do, can take it.
std::pair<Handle, int> free_port() {
  Handle held(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  if (held.get() < 0 || ::setsockopt(held.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(held.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(held.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    cannot("no free port for the processes to find each other at");
  }
  return {std::move(held), ntohs(address.sin_port)};
}

// This process's variables and those of a rank, which take the place of any of the same name.
std::vector<std::string> environment_of(int rank, int count, int port) {
  const std::vector<std::pair<std::string, std::string>> own = {
      {"RANK", std::to_string(rank)},
      {"LOCAL_RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(count)},
      {"LOCAL_WORLD_SIZE", std::to_string(count)},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(port)},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::none_of(own.begin(), own.end(), [&](const auto& one) { return one.first == name; }))
      all.emplace_back(text);
  }
  for (const auto& [name, value] : own) all.push_back(name + '=' + value);
  return all;
}

struct Child {
  pid_t process = -1;  // -1: ended
  Handle errors{};     // the reading end of its standard error; none for rank 0
  std::string said{};  // the end of what came out there
  int status = 0;      // as waitpid gives it
};

// Signals that are for this process, blocked and readable from a descriptor, until the end of the
// scope. One that the user has ignored (nohup does) stays ignored.
struct Signals {
  Signals() {
    ::sigemptyset(&wanted);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction now {};
      if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
        ::sigaddset(&wanted, signal);
    }
    ::sigaddset(&wanted, SIGCHLD);
    struct sigaction plain {};
    plain.sa_handler = SIG_DFL;  // ignored, it would hide how a child ended
    ::sigaction(SIGCHLD, &plain, &child_before);
    ::sigprocmask(SIG_BLOCK, &wanted, &before);
    arriving = Handle(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (arriving.get() < 0) {
      restore();
      cannot("signals cannot be waited for");
    }
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() { restore(); }
  void restore() const {
    ::sigaction(SIGCHLD, &child_before, nullptr);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
  }
  // In a child: one that came since the fork ends it. This process's handlers would swallow it.
  void restore_for_exec() const {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      if (::sigismember(&wanted, signal) == 1) ::signal(signal, SIG_DFL);
    }
    restore();
  }
  sigset_t wanted{}, before{};
  struct sigaction child_before {};
  Handle arriving;
};

Child start(int rank, int count, int port, char** argv, const Signals& signals) {
  std::vector<std::string> variables = environment_of(rank, count, port);
  std::vector<char*> environment;
  for (std::string& one : variables) environment.push_back(one.data());
  environment.push_back(nullptr);
  std::array<int, 2> ends{-1, -1};
  if (rank > 0 && ::pipe2(ends.data(), O_CLOEXEC) != 0)
    cannot(fmt::format("no pipe for the messages of process {} of {}", rank + 1, count));
  Child child;
  child.errors = Handle(ends[0]);
  const Handle writing(ends[1]);
  const pid_t parent = ::getpid();
  child.process = ::fork();
  if (child.process < 0) cannot(fmt::format("process {} of {} cannot start", rank + 1, count));
  if (child.process > 0) return child;

  // The new process; only calls that a fork of many threads may make.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it was killed before that took effect
  if (rank > 0) {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(writing.get(), STDERR_FILENO);
  }
  signals.restore_for_exec();
  ::execve("/proc/self/exe", argv, environment.data());
  constexpr std::string_view sentence = "the program could not be started again\n";
  if (::write(STDERR_FILENO, sentence.data(), sentence.size()) < 0) ::_exit(126);
  ::_exit(127);
}

void read_errors(Child& child) {
  std::array<char, 4096> part{};
  const ssize_t count = ::read(child.errors.get(), part.data(), part.size());
  if (count < 0 && errno == EINTR) return;
  if (count <= 0) {
    child.errors.close();
    return;
  }
  child.said.append(part.data(), as_size(count));
  if (child.said.size() > 2 * held_back) child.said.erase(0, child.said.size() - held_back);
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void say(const std::vector<Child>& children, int first) {
  const Child& child = nth(children, first);
  const int zero = children[0].status;
  if (first > 0 && (WIFSIGNALED(child.status) || WIFSIGNALED(zero) || WEXITSTATUS(zero) == 0)) {
    std::string_view rest = child.said;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      tell("rank {}: {}\n", first, line);
    }
  }
  if (WIFSIGNALED(child.status)) {
    tell("error: rank {} was ended by signal {}: {}\n", first, WTERMSIG(child.status),
         ::strsignal(WTERMSIG(child.status)));
  }
}

// All children, started one after the other and looked after until none is left.
class Family {
 public:
  explicit Family(const Signals& signals) : signals_(signals) {}
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
  ~Family() {  // has children only where one of them could not be started
    send(SIGKILL);
    for (const Child& child : children_) {
      if (child.process > 0) ::waitpid(child.process, nullptr, 0);
    }
  }
  void add(Child child) { children_.push_back(std::move(child)); }

  int wait() {
    while (running() > 0) {
      if (Clock::now() >= next_) {
        send(asked_ ? SIGKILL : SIGTERM);
        asked_ = true;
        next_ = Clock::now() + to_end_when_asked;
      }
      look();
    }
    for (Child& child : children_) {  // what is still in the pipes
      while (child.errors.get() >= 0) read_errors(child);
    }
    std::fflush(stdout);
    if (ended_by_ != 0) return 128 + ended_by_;
    if (first_ < 0) return 0;
    say(children_, first_);
    return code_of(nth(children_, first_).status);
  }

 private:
  std::ptrdiff_t running() const {
    return std::count_if(children_.begin(), children_.end(),
                         [](const Child& child) { return child.process > 0; });
  }

  void send(int signal) const {
    for (const Child& child : children_) {
      if (child.process > 0) ::kill(child.process, signal);
    }
  }

  // Waits until something happens or the time of the next step has come.
  void look() {
    std::vector<pollfd> ready = {{signals_.arriving.get(), POLLIN, 0}};
    for (const Child& child : children_) ready.push_back({child.errors.get(), POLLIN, 0});
    int milliseconds = -1;
    if (next_ != never) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_ - Clock::now());
      milliseconds = static_cast<int>(std::max<std::int64_t>(0, left.count()));
    }
    if (::poll(ready.data(), ready.size(), milliseconds) <= 0) return;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (ready[i + 1].revents != 0) read_errors(children_[i]);
    }
    signalfd_siginfo signal{};
    while (::read(signals_.arriving.get(), &signal, sizeof signal) ==
           static_cast<ssize_t>(sizeof signal)) {
      if (signal.ssi_signo == SIGCHLD) {
        reap();
      } else if (ended_by_ == 0) {
        ended_by_ = static_cast<int>(signal.ssi_signo);
        next_ = Clock::now();
      }
    }
  }

  void reap() {
    for (std::size_t i = 0; i < children_.size(); ++i) {
      Child& child = children_[i];
      if (child.process <= 0 || ::waitpid(child.process, &child.status, WNOHANG) <= 0) continue;
      child.process = -1;
      if (code_of(child.status) == 0 || first_ >= 0 || next_ != never) continue;
      first_ = static_cast<int>(i);
      next_ = Clock::now() + to_end_by_themselves;
    }
  }

  const Signals& signals_;
  std::vector<Child> children_;     // by rank
  int first_ = -1;                  // rank that failed before all others
  int ended_by_ = 0;                // the signal that this process got
  Clock::time_point next_ = never;  // when they get the next signal
  bool asked_ = false;              // they have got SIGTERM
};

}  // namespace

int launch(int count, char** argv) {
  if (count < 1) throw UsageError(fmt::format("{} processes: at least one is needed", count));
  const Signals signals;
  const auto [held, port] = free_port();
  std::fflush(nullptr);
  Family family(signals);
  for (int rank = 0; rank < count; ++rank) family.add(start(rank, count, port, argv, signals));
  return family.wait();
}

}  // namespace stageline::executor
