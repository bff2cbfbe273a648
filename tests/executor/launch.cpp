// Does a program that starts itself several times end when, and as, it should?
#include "tools/executor/processes/launch.hpp"
#include "tools/executor/processes/place.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
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

#include "sim/base/errors.hpp"
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

// What started processes have written, one file a rank.
std::string text_of(const std::string& folder, int rank) {
  std::ostringstream all;
  all << std::ifstream(folder + "/" + std::to_string(rank)).rdbuf();
  return all.str();
}

// Waits until the rank has written who it is.
pid_t process_of(const std::string& folder, int rank) {
  std::string written;
  while ((written = text_of(folder, rank)).find('\n') == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return static_cast<pid_t>(std::stoi(written));
}

// A folder for what they write.
struct Folder {
  Folder() {
    std::string name = "/tmp/stageline-launch.XXXXXX";
    path = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    for (int rank = 0; rank < 4; ++rank) std::remove((path + "/" + std::to_string(rank)).c_str());
    ::rmdir(path.c_str());
  }
  std::string text(int rank) const { return text_of(path, rank); }
  // Waits until ranks 0 to 2 have written who they are.
  std::vector<pid_t> processes() const {
    return {process_of(path, 0), process_of(path, 1), process_of(path, 2)};
  }
  std::string path;
};

// Waits until there is no such process, for a minute at most.
bool ended(pid_t process) {
  for (const auto start = Clock::now(); Clock::now() - start < std::chrono::minutes(1);) {
    if (::kill(process, 0) != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// How long ranks stay that nobody ends, and what says on any machine that they were ended.
constexpr std::chrono::minutes by_themselves{10};
constexpr std::chrono::minutes ended_by_another{5};

// Says in the rank's file that it was asked to end, and ends.
int own_file = -1;
void end_when_asked(int) {
  constexpr char words[] = "asked\n";
  ::_exit(::write(own_file, words, sizeof words - 1) > 0 ? 0 : 1);
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
  const std::string what = variable("RANKS_DO");
  const std::string file = variable("RANKS_WRITE") + "/" + std::to_string(place->rank);
  if (what == "end when asked") {
    own_file = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::signal(SIGTERM, end_when_asked);
  }
  if (what == "ignore SIGTERM") ::signal(SIGTERM, SIG_IGN);
  std::ofstream(file, std::ios::app)
      << ::getpid() << '\n'
      << place->rank << ' ' << place->size << ' ' << place->local_rank << ' ' << place->local_size
      << ' ' << place->master << ' ' << (place->port > 0) << ' ' << place->agent << '\n';
  if (place->rank == 1) std::fputs("first line\nsecond line\n", stderr);
  if (what == "fail" && place->rank == 1) {
    for (const int other : {0, 2}) process_of(variable("RANKS_WRITE"), other);
    std::_Exit(7);
  }
  if (what == "fail, and 0 says why" && place->rank == 1) std::_Exit(7);
  if (what == "fail, and 0 says why" && place->rank == 0) {
    // The parent has heard of that end, too, before there is no such process any more.
    if (!ended(process_of(variable("RANKS_WRITE"), 1))) std::_Exit(9);
    std::fputs("error: rank 1: first line\n", stderr);
    std::_Exit(2);
  }
  if (what == "fail, and 0 says why") std::_Exit(0);
  if (what == "crash" && place->rank == 2) {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
  }
  if (what == "crash") std::_Exit(0);
  if (what != "end") std::this_thread::sleep_for(by_themselves);
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
  CHECK(Clock::now() - start < ended_by_another);
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
  for (const Case& one : {Case{SIGINT, "end when asked"}, Case{SIGTERM, "end when asked"},
                          Case{SIGINT, "ignore SIGTERM"}}) {
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
    CHECK(Clock::now() - start < ended_by_another);
    CHECK(parent.errors() == "");
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(folder.text(rank).ends_with("asked\n") == (ranks_do == "end when asked"));
    }
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
