// Starts stageline-train for every missing run, keeps what it logged, and writes the report.
#include "tools/executor/programs/study_runs.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/executor/processes/process.hpp"
#include "tools/executor/processes/tell.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/lab/papers/staleness/copies.hpp"
#include "tools/lab/papers/staleness/report.hpp"
#include "traces/gzip.hpp"

namespace stageline {
namespace {

using namespace executor;

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds to_end_when_asked{10};  // by SIGTERM, before SIGKILL

// A run that has not been made yet.
struct Wanted {
  const lab::StudyNet* net = nullptr;
  const lab::StudyCase* asked = nullptr;
  std::uint64_t seed = 1;
};

struct Child {
  pid_t process = -1;
  int core = 0;
  Wanted wanted;
  std::string log;
  Clock::time_point began;
};

// A folder for the logs on their way, gone at the end.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "stageline-study-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw UsageError(fmt::format("no folder can be made in {}: {}",
                                   fs::temp_directory_path().string(), std::strerror(errno)));
    }
    folder_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  std::string file(std::size_t number) const {
    return (folder_ / fmt::format("{}.json", number)).string();
  }

 private:
  fs::path folder_;
};

// The signals that a study waits for, blocked until the end of the scope but for pause(): none is
// lost between a look at what it has set and the wait.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t wanted{};
    ::sigemptyset(&wanted);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) ::sigaddset(&wanted, signal);
    ::sigprocmask(SIG_BLOCK, &wanted, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { restore(); }
  // Returns after a handler.
  void pause() const {
    sigset_t open = before_;
    ::sigdelset(&open, SIGCHLD);
    ::sigsuspend(&open);
  }
  // In a child: one that came since the fork ends it. This process's handlers would swallow it.
  void restore_for_exec() const {
    for (const int signal : {SIGINT, SIGTERM}) {
      struct sigaction now {};
      if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
      ::signal(signal, SIG_DFL);
    }
    restore();
  }

 private:
  void restore() const { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  sigset_t before_{};
};

// Lets the end of a child end BlockedSignals::pause(), until the end of the scope.
class ChildHandler {
 public:
  ChildHandler() {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};
    nothing.sa_flags = SA_RESTART | SA_NOCLDSTOP;
    ::sigaction(SIGCHLD, &nothing, &before_);
  }
  ChildHandler(const ChildHandler&) = delete;
  ChildHandler& operator=(const ChildHandler&) = delete;
  ~ChildHandler() { ::sigaction(SIGCHLD, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

class Study {
 public:
  Study(const StudyRequest& request, const std::atomic<bool>& interrupted)
      : request_(request),
        interrupted_(interrupted),
        file_(fs::path(request.out) / "staleness.json.gz") {
    if (::access(request_.trainer.c_str(), X_OK) != 0) {
      throw UsageError(
          fmt::format("there is no program {}; build stageline-train (with LibTorch), "
                      "or say with --train where it is",
                      request_.trainer));
    }
    cores_ = allowed_cores();
    if (as_size(request_.jobs) > cores_.size()) {
      throw UsageError(fmt::format("--jobs {}: this process may use {} core{}", request_.jobs,
                                   cores_.size(), cores_.size() == 1 ? "" : "s"));
    }
    for (const std::string& name : request_.only) lab::staleness_net(name);
    make_folder(request_.out);
    if (fs::exists(file_)) {
      evidence_ =
          lab::parse_staleness_evidence(read_content(file_.string()).named.text, file_.string());
    }
    evidence_.seeds = request_.seeds;
    drop_others();
    list_wanted();
  }
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;
  ~Study() { stop_all(); }

  void run() {
    all_ = wanted_.size();
    tell("{} runs to make, {} at a time, each on a core of its own\n", all_, request_.jobs);
    while (next_ < wanted_.size() || !running_.empty()) {
      while (!interrupted_ && next_ < wanted_.size() && running_.size() < as_size(request_.jobs)) {
        start(wanted_[next_++]);
      }
      if (interrupted_) throw cli::Interrupted{"the same command goes on"};
      wait_for_one();
    }
    lab::write_staleness_report(request_.out, evidence_);
    fmt::print("{}", lab::staleness_text(evidence_));
  }

 private:
  bool chosen(const lab::StudyNet& net) const {
    if (request_.only.empty()) return !net.large;
    return std::find(request_.only.begin(), request_.only.end(), net.name) != request_.only.end();
  }

  // Runs of cases that are no longer in the table, or have other settings there now.
  void drop_others() {
    const auto other = [](const lab::StudyRun& run) {
      for (const lab::StudyNet& net : lab::staleness_nets()) {
        for (const lab::StudyCase& one : net.cases) {
          if (run.log.command == lab::train_command(net, one, run.log.seed) &&
              run.net == net.name && run.group == one.group && run.name == one.name) {
            return false;
          }
        }
      }
      return true;
    };
    std::vector<lab::StudyRun>& runs = evidence_.runs;
    runs.erase(std::remove_if(runs.begin(), runs.end(), other), runs.end());
  }

  // Seed by seed, so that an interrupted study has all cases of the first.
  void list_wanted() {
    for (int seed = 1; seed <= request_.seeds; ++seed) {
      for (const lab::StudyNet& net : lab::staleness_nets()) {
        if (!chosen(net)) continue;
        for (const lab::StudyCase& one : net.cases) {
          const auto number = static_cast<std::uint64_t>(seed);
          if (!request_.fresh && lab::find_run(evidence_, net, one, number) != nullptr) continue;
          wanted_.push_back({&net, &one, number});
        }
      }
    }
  }

  int free_core() const {
    for (const int core : cores_) {
      const bool used = std::any_of(running_.begin(), running_.end(),
                                    [&](const Child& child) { return child.core == core; });
      if (!used) return core;
    }
    return cores_.front();
  }

  void start(const Wanted& wanted) {
    Child child;
    child.wanted = wanted;
    child.core = free_core();
    child.log = scratch_.file(started_++);
    child.began = Clock::now();
    std::vector<std::string> arguments =
        lab::train_arguments(*wanted.net, *wanted.asked, wanted.seed);
    arguments.insert(arguments.begin(), request_.trainer);
    if (request_.device != "cpu") arguments.insert(arguments.end(), {"--on", request_.device});
    arguments.insert(arguments.end(), {"--quiet", "--json", child.log});
    std::vector<char*> argv;
    for (std::string& one : arguments) argv.push_back(one.data());
    argv.push_back(nullptr);
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(as_size(child.core), &core);
    const pid_t parent = ::getpid();
    const BlockedSignals blocked;
    child.process = ::fork();
    if (child.process < 0) {
      throw UsageError(fmt::format("a training cannot be started: {}", std::strerror(errno)));
    }
    if (child.process == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) ::_exit(1);  // it was killed before that took effect
      ::sched_setaffinity(0, sizeof core, &core);
      const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
      ::dup2(nothing, STDOUT_FILENO);
      blocked.restore_for_exec();
      ::execv(argv.front(), argv.data());
      ::_exit(127);
    }
    running_.push_back(std::move(child));
  }

  // Until one has ended, or a signal comes; the caller looks.
  void wait_for_one() {
    int status = 0;
    pid_t process = 0;
    {
      const BlockedSignals blocked;
      while (!interrupted_ && (process = ::waitpid(-1, &status, WNOHANG)) == 0) blocked.pause();
    }
    if (process < 0) {
      throw UsageError(fmt::format("a training cannot be waited for: {}", std::strerror(errno)));
    }
    if (process > 0) take(process, status);
  }

  void take(pid_t process, int status) {
    const auto at = std::find_if(running_.begin(), running_.end(),
                                 [&](const Child& child) { return child.process == process; });
    if (at == running_.end()) return;
    const Child child = std::move(*at);
    running_.erase(at);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 130 || code == 143) throw cli::Interrupted{"the same command goes on"};
    // 1: it diverged, which is a result.
    if (code > 1) {
      throw UsageError(fmt::format(
          "a training failed with exit code {}: {}", code,
          lab::train_command(*child.wanted.net, *child.wanted.asked, child.wanted.seed)));
    }
    keep(child);
  }

  void keep(const Child& child) {
    const Wanted& wanted = child.wanted;
    lab::StudyRun run;
    run.net = wanted.net->name;
    run.group = wanted.asked->group;
    run.name = wanted.asked->name;
    run.log = lab::parse_training_log(read_file(child.log), child.log);
    fs::remove(child.log);
    run.log.command = lab::train_command(*wanted.net, *wanted.asked, wanted.seed);
    run.copies = lab::kept_copies(*wanted.net, *wanted.asked, run.log);
    const double accuracy = 100 * run.log.evaluations.back().accuracy;
    lab::keep_run(evidence_, std::move(run));
    write_file(file_.string(), gzipped(lab::to_json(evidence_)));
    took_[wanted.net].push_back(std::chrono::duration<double>(Clock::now() - child.began).count());
    ++done_;
    tell("{}/{} · {}, {}: {}, seed {}: {:.2f} %{}\n", done_, all_, wanted.net->title,
         name(wanted.asked->group), wanted.asked->name, wanted.seed, accuracy, left());
  }

  // By what a run of the same net has taken so far.
  std::string left() const {
    double seconds = 0;
    for (std::size_t i = done_; i < wanted_.size(); ++i) {
      const auto known = took_.find(wanted_[i].net);
      const std::vector<double>& some =
          known != took_.end() ? known->second : took_.begin()->second;
      double sum = 0;
      for (const double one : some) sum += one;
      seconds += sum / static_cast<double>(some.size());
    }
    if (done_ == all_) return "";
    return fmt::format(" · {:.1f} min left", seconds / request_.jobs / 60);
  }

  void stop_all() {
    send(SIGTERM);
    const Clock::time_point until = Clock::now() + to_end_when_asked;
    while (!running_.empty() && Clock::now() < until) {
      std::erase_if(running_, [](const Child& child) {
        return ::waitpid(child.process, nullptr, WNOHANG) != 0;
      });
      if (!running_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    send(SIGKILL);
    for (const Child& child : running_) {
      while (::waitpid(child.process, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    running_.clear();
  }

  void send(int signal) const {
    for (const Child& child : running_) ::kill(child.process, signal);
  }

  const StudyRequest& request_;
  const std::atomic<bool>& interrupted_;
  fs::path file_;
  Scratch scratch_;
  std::vector<int> cores_;
  const ChildHandler child_handler_;
  lab::StalenessEvidence evidence_;
  std::vector<Wanted> wanted_;
  std::size_t next_ = 0;
  std::size_t started_ = 0;
  std::size_t done_ = 0;
  std::size_t all_ = 0;
  std::vector<Child> running_;
  std::map<const lab::StudyNet*, std::vector<double>> took_;  // seconds
};

}  // namespace

void make_study(const StudyRequest& request, const std::atomic<bool>& interrupted) {
  Study(request, interrupted).run();
}

}  // namespace stageline
