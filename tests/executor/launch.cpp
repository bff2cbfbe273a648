// Does a program that starts itself several times end when, and as, it should?
#include "tools/executor/processes/launch.hpp"
#include "tools/executor/processes/place.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sim/errors.hpp"
#include "tests/executor/spawned.hpp"

namespace stageline::executor {
namespace {

using Clock = std::chrono::steady_clock;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Names that no variable may have by chance.
const Variables none = {
    {"RANK", ""},        {"WORLD_SIZE", ""},  {"MASTER_ADDR", ""},
    {"MASTER_PORT", ""}, {"LOCAL_RANK", ""},  {"LOCAL_WORLD_SIZE", ""},
    {"RANKS_DO", ""},    {"RANKS_WRITE", ""}, {"TORCHELASTIC_USE_AGENT_STORE", ""}};

Variables with(Variables some) {
  some.merge(Variables(none));
  return some;
}

// Sets variables for the time of a test.
class Environment {
 public:
  explicit Environment(const Variables& some) {
    for (const auto& [name, value] : with(some)) {
      before_[name] = variable(name.c_str());
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  Variables before_;
};

std::string complaint(const Variables& some) {
  const Environment environment(some);
  try {
    place_from_environment();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

// A folder for what the started processes write, one file a rank.
struct Folder {
  Folder() {
    std::string name = "/tmp/stageline-launch.XXXXXX";
    path = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    for (int rank = 0; rank < 4; ++rank) std::remove(file(rank).c_str());
    ::rmdir(path.c_str());
  }
  std::string file(int rank) const { return path + "/" + std::to_string(rank); }
  std::string text(int rank) const {
    std::ostringstream all;
    all << std::ifstream(file(rank)).rdbuf();
    return all.str();
  }
  // Waits until ranks 0 to 2 have written who they are.
  std::vector<pid_t> processes() const {
    std::vector<pid_t> found;
    for (int rank = 0; rank < 3; ++rank) {
      std::string written;
      while ((written = text(rank)).find('\n') == std::string::npos)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      found.push_back(static_cast<pid_t>(std::stoi(written)));
    }
    return found;
  }
  std::string path;
};

// Waits until there is no such process, for ten seconds at most.
bool ended(pid_t process) {
  for (const auto start = Clock::now(); Clock::now() - start < std::chrono::seconds(10);) {
    if (::kill(process, 0) != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

const std::string launcher = "as a launcher: of three";

}  // namespace

// Started with RANKS_DO, once as the parent and then as each rank.
TEST_CASE("as a launcher: of three" * doctest::skip()) {
  const auto place = place_from_environment();
  if (!place) {
    std::vector<std::string> words = {"test", "--no-skip", "--test-case=" + launcher};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::_Exit(launch(3, arguments.data()));
  }
  std::ofstream(variable("RANKS_WRITE") + "/" + std::to_string(place->rank))
      << ::getpid() << '\n'
      << place->rank << ' ' << place->size << ' ' << place->local_rank << ' ' << place->local_size
      << ' ' << place->master << ' ' << (place->port > 0) << ' ' << place->agent << '\n';
  const std::string what = variable("RANKS_DO");
  if (place->rank == 1) std::fputs("first line\nsecond line\n", stderr);
  if (what == "fail" && place->rank == 1) std::_Exit(7);
  if (what == "fail, and 0 says why" && place->rank == 1) std::_Exit(7);
  if (what == "fail, and 0 says why" && place->rank == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::fputs("error: rank 1: first line\n", stderr);
    std::_Exit(2);
  }
  if (what == "fail, and 0 says why") std::_Exit(0);
  if (what == "crash" && place->rank == 2) {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
  }
  if (what == "crash") {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::_Exit(0);
  }
  if (what == "ignore SIGTERM") ::signal(SIGTERM, SIG_IGN);
  if (what != "end") std::this_thread::sleep_for(std::chrono::seconds(60));
  std::_Exit(0);
}

TEST_CASE("without torchrun's variables a process stands alone") {
  const Environment environment({{"MASTER_ADDR", "node0"}, {"LOCAL_RANK", "1"}});
  CHECK_FALSE(place_from_environment());
}

TEST_CASE("torchrun's variables say where a process stands") {
  const Environment environment({{"RANK", "5"},
                                 {"WORLD_SIZE", "8"},
                                 {"MASTER_ADDR", "node0"},
                                 {"MASTER_PORT", "29500"},
                                 {"LOCAL_RANK", "1"},
                                 {"LOCAL_WORLD_SIZE", "4"},
                                 {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                 {"TORCHELASTIC_RESTART_COUNT", "2"}});
  const auto place = place_from_environment();
  REQUIRE(place);
  CHECK(place->rank == 5);
  CHECK(place->size == 8);
  CHECK(place->master == "node0");
  CHECK(place->port == 29500);
  CHECK(place->local_rank == 1);
  CHECK(place->local_size == 4);
  CHECK(place->agent == "/worker/attempt_2");
}

TEST_CASE("variables that are missing or no numbers are one sentence each") {
  const Variables good = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};
  CHECK(complaint(good) == "none");
  const auto changed = [&](const std::string& name, const std::string& value) {
    Variables some = good;
    some[name] = value;
    return complaint(some);
  };
  CHECK(changed("WORLD_SIZE", "") ==
        "RANK is set and WORLD_SIZE is not, but a process among several needs RANK, WORLD_SIZE, "
        "MASTER_ADDR and MASTER_PORT; start it with torchrun, which sets all four, or unset them");
  CHECK(changed("RANK", "").starts_with("WORLD_SIZE is set and RANK is not, "));
  CHECK(changed("MASTER_ADDR", "").starts_with("RANK is set and MASTER_ADDR is not, "));
  CHECK(changed("MASTER_PORT", "").starts_with("RANK is set and MASTER_PORT is not, "));
  CHECK(changed("RANK", "2") == "RANK is \"2\", not a whole number from 0 to 1");
  CHECK(changed("RANK", "-1") == "RANK is \"-1\", not a whole number from 0 to 1");
  CHECK(changed("WORLD_SIZE", "two") ==
        "WORLD_SIZE is \"two\", not a whole number from 1 to 65536");
  CHECK(changed("MASTER_PORT", "29500x") ==
        "MASTER_PORT is \"29500x\", not a whole number from 1 to 65535");
  CHECK(changed("LOCAL_RANK", "2") == "LOCAL_RANK is \"2\", not a whole number from 0 to 1");
}

TEST_CASE("each started process has a place, and all that end well are code 0") {
  const Folder folder;
  Spawned parent(launcher, with({{"RANKS_DO", "end"}, {"RANKS_WRITE", folder.path}}));
  CHECK(parent.wait() == 0);
  CHECK(parent.errors() == "");
  for (int rank = 0; rank < 3; ++rank) {
    const std::string text = folder.text(rank);
    const std::string number = std::to_string(rank);
    CHECK(text.substr(text.find('\n') + 1) == number + " 3 " + number + " 3 127.0.0.1 1 \n");
  }
}

TEST_CASE("one that fails ends all, with its code and what it said") {
  const Folder folder;
  const auto start = Clock::now();
  Spawned parent(launcher, with({{"RANKS_DO", "fail"}, {"RANKS_WRITE", folder.path}}));
  CHECK(parent.wait() == 7);
  CHECK(Clock::now() - start < std::chrono::seconds(10));
  CHECK(parent.errors() == "rank 1: first line\nrank 1: second line\n");
  for (const pid_t process : folder.processes()) CHECK(ended(process));
}

TEST_CASE("of one that fails nothing is shown where rank 0 ends with an error of its own") {
  const Folder folder;
  Spawned parent(launcher,
                 with({{"RANKS_DO", "fail, and 0 says why"}, {"RANKS_WRITE", folder.path}}));
  CHECK(parent.wait() == 7);
  CHECK(parent.errors() == "error: rank 1: first line\n");
}

TEST_CASE("one that a signal ends is named with it") {
  const Folder folder;
  Spawned parent(launcher, with({{"RANKS_DO", "crash"}, {"RANKS_WRITE", folder.path}}));
  CHECK(parent.wait() == 128 + SIGSEGV);
  CHECK(parent.errors().ends_with("error: rank 2 was ended by signal 11: Segmentation fault\n"));
}

TEST_CASE("a signal to the parent ends all at once, even those that ignore it") {
  struct Case {
    int signal;
    std::string ranks_do;
  };
  for (const Case& one :
       {Case{SIGINT, "sleep"}, Case{SIGTERM, "sleep"}, Case{SIGINT, "ignore SIGTERM"}}) {
    const int signal = one.signal;
    const std::string ranks_do = one.ranks_do;
    CAPTURE(signal);
    CAPTURE(ranks_do);
    const Folder folder;
    Spawned parent(launcher, with({{"RANKS_DO", ranks_do}, {"RANKS_WRITE", folder.path}}));
    const std::vector<pid_t> processes = folder.processes();
    const auto start = Clock::now();
    parent.kill(signal);
    CHECK(parent.wait() == 128 + signal);
    CHECK(Clock::now() - start < std::chrono::seconds(ranks_do == "sleep" ? 1 : 4));
    CHECK(parent.errors() == "");
    for (const pid_t process : processes) CHECK(::kill(process, 0) != 0);
  }
}

TEST_CASE("a parent that is killed leaves nobody behind") {
  const Folder folder;
  Spawned parent(launcher, with({{"RANKS_DO", "ignore SIGTERM"}, {"RANKS_WRITE", folder.path}}));
  const std::vector<pid_t> processes = folder.processes();
  parent.kill(SIGKILL);
  CHECK(parent.wait() == 128 + SIGKILL);
  for (const pid_t process : processes) CHECK(ended(process));
}

}  // namespace stageline::executor
