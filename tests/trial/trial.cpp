// Random questions to all commands, held to the laws between their answers.
//
// usage: trial [--questions N | --seconds N] [--seed S] [--first NUMBER] [--only LAW] [--folder
// DIR]
//
// A drawn question has a number; the same seed and number are the same question everywhere.
// Questions are asked in processes of their own, so that a crash and a hang are findings like
// others. A finding is minimized: settings and options are dropped while the same law is broken.
// Exit code 1: there are findings; 2: bad arguments.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/questions/ask.hpp"
#include "tests/trial/laws.hpp"

namespace stageline::trial {
namespace {

constexpr unsigned longest_seconds = 60;  // of a processor, for one law: longer is a hang
constexpr int block = 100;                // questions of one process
constexpr int minimized_of_a_law = 3;     // findings; the others are shown as they were drawn

std::vector<Law> all_laws() {
  std::vector<Law> laws(agreements().begin(), agreements().end());
  laws.insert(laws.end(), changes().begin(), changes().end());
  return laws;
}

struct Options {
  std::int64_t questions = 10'000;
  double seconds = 0;  // 0: so many questions
  std::uint64_t seed = 1;
  int first = 0;
  std::string only;
  std::string folder;
};

// What the processes write for the one that waits for them.
struct Shared {
  Counts counts;
  int number = 0;  // of the question that is put
  std::int64_t tried[64] = {};
  std::int64_t applied[64] = {};
  int broken[block] = {};
  int findings = 0;
  char what[16'000] = {};  // of a finding that is looked at alone
};

enum class Outcome { holds, broken, crash, hang };

// Ends the process by SIGPROF after so much of a processor's time, which other work does not
// shorten; 0: never.
void end_after(unsigned seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

class Trial {
 public:
  explicit Trial(Options options) : options_(std::move(options)), laws_(all_laws()) {
    void* const memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory is shared");
    shared_ = new (memory) Shared;
  }
  ~Trial() { ::munmap(shared_, sizeof(Shared)); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  int run() {
    const auto begin = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    int findings = 0;
    int minutes = 0;
    for (int first = options_.first; goes_on(elapsed()); first += block) {
      for (const auto& [number, outcome] : ask_block(first)) {
        ++findings;
        show(number, outcome);
      }
      if (elapsed() < 60 * (minutes + 1)) continue;
      minutes = static_cast<int>(elapsed() / 60);
      fmt::print(stderr, "{} minutes, up to number {}: {} questions, {} findings\n", minutes,
                 first + block, shared_->counts.asked, findings);
    }
    print_counts(elapsed(), findings);
    return findings > 0 ? 1 : 0;
  }

 private:
  Options options_;
  std::vector<Law> laws_;
  std::map<std::size_t, int> shown_;  // findings, by law
  Shared* shared_;

  bool goes_on(double elapsed) const {
    if (options_.seconds > 0) return elapsed < options_.seconds;
    return shared_->counts.asked < options_.questions;
  }

  // The law of a question: the first random number says which, and the question is drawn behind it.
  std::size_t law_of(test::Questions& draw) const {
    int all = 0;
    for (const Law& law : laws_) all += law.weight;
    int at = draw.number(all);
    std::size_t law = 0;
    while (at >= laws_[law].weight) at -= laws_[law++].weight;
    if (options_.only.empty()) return law;
    return static_cast<std::size_t>(
        std::find_if(laws_.begin(), laws_.end(),
                     [&](const Law& one) { return one.name == options_.only; }) -
        laws_.begin());
  }

  std::pair<std::size_t, Question> drawn(int number) const {
    test::Questions draw = draw_of(options_.seed, number, options_.folder);
    const std::size_t law = law_of(draw);
    return {law, draw_question(draw, laws_[law].of)};
  }

  // Throws Contradiction alone.
  bool hold(std::size_t law, const Question& question, Counts& counts) const {
    Asker asker(counts);
    // Further numbers do not depend on how many the question took.
    test::Questions draw = draw_of(options_.seed + 1'000'000'007, shared_->number, options_.folder);
    try {
      return laws_[law].hold(asker, question, draw);
    } catch (const std::exception& error) {
      throw Contradiction{fmt::format("an exception: {}", error.what())};
    }
  }

  // In a process of its own; `work` returns its exit code.
  template <class Work>
  static Outcome apart(Work work) {
    std::fflush(stdout);
    std::fflush(stderr);
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("no process is to be had");
    if (child == 0) {
      int code = 1;
      try {
        code = work();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        code = 3;
      }
      std::fflush(stdout);
      ::_exit(code);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
    }
    if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGPROF ? Outcome::hang : Outcome::crash;
    if (WEXITSTATUS(status) > 1) return Outcome::crash;
    return WEXITSTATUS(status) == 0 ? Outcome::holds : Outcome::broken;
  }

  std::vector<std::pair<int, Outcome>> ask_block(int first) {
    std::vector<std::pair<int, Outcome>> found;
    for (int from = first; from < first + block;) {
      shared_->findings = 0;
      const Outcome outcome = apart([&] {
        for (int number = from; number < first + block; ++number) ask_one(number);
        return 0;
      });
      for (int i = 0; i < shared_->findings; ++i) {
        found.emplace_back(shared_->broken[i], Outcome::broken);
      }
      if (outcome == Outcome::holds) break;
      found.emplace_back(shared_->number, outcome);
      from = shared_->number + 1;
    }
    return found;
  }

  void ask_one(int number) {
    shared_->number = number;
    const auto [law, question] = drawn(number);
    ++shared_->tried[law];
    end_after(longest_seconds);
    try {
      shared_->applied[law] += hold(law, question, shared_->counts) ? 1 : 0;
    } catch (const Contradiction&) {
      shared_->broken[shared_->findings++] = number;
    }
    end_after(0);
  }

  Outcome look_at(std::size_t law, const Question& question) {
    shared_->what[0] = '\0';
    return apart([&] {
      end_after(longest_seconds);
      if (std::freopen("/dev/null", "w", stderr) == nullptr) return 0;
      Counts counts;
      try {
        hold(law, question, counts);
      } catch (const Contradiction& contradiction) {
        std::snprintf(shared_->what, sizeof shared_->what, "%s", contradiction.what.c_str());
        return 1;
      }
      return 0;
    });
  }

  // Drops settings and options while the question still has the same outcome.
  Question minimized(std::size_t law, Question question, Outcome outcome) {
    const auto still = [&](const Question& other) { return look_at(law, other) == outcome; };
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (std::size_t i = 0; i < question.settings.size();) {
        Question other = question;
        other.settings.erase(other.settings.begin() + static_cast<std::ptrdiff_t>(i));
        if (still(other)) {
          question = std::move(other);
          smaller = true;
        } else {
          ++i;
        }
      }
      for (std::size_t i = 0; i < question.options.size();) {
        Question other = question;
        other.options.erase(other.options.begin() + static_cast<std::ptrdiff_t>(i));
        if (still(other)) {
          question = std::move(other);
          smaller = true;
        } else {
          ++i;
        }
      }
    }
    return question;
  }

  void show(int number, Outcome outcome) {
    shared_->number = number;
    const auto [law, question] = drawn(number);
    const bool many = ++shown_[law] > minimized_of_a_law;
    const Question least = many ? question : minimized(law, question, outcome);
    look_at(law, least);
    const char* const kind = outcome == Outcome::crash  ? "crash"
                             : outcome == Outcome::hang ? "hang"
                                                        : "contradiction";
    fmt::print("{} by seed {}, number {}: {} ({})\n  question: {}\n  least: {}\n  {}\n", kind,
               options_.seed, number, laws_[law].name, laws_[law].says,
               test::typed(question.words()), test::typed(least.words()),
               static_cast<const char*>(shared_->what));
    std::fflush(stdout);
  }

  void print_counts(double seconds, int findings) const {
    for (std::size_t law = 0; law < laws_.size(); ++law) {
      fmt::print("{:16} {:8} tried {:8} applied  {}\n", laws_[law].name, shared_->tried[law],
                 shared_->applied[law], laws_[law].says);
    }
    fmt::print("seed {}: {} questions, {} answered, {} findings, {:.1f} s\n", options_.seed,
               shared_->counts.asked, shared_->counts.answered, findings, seconds);
  }
};

bool is_law(const std::string& name) {
  const std::vector<Law> laws = all_laws();
  return std::any_of(laws.begin(), laws.end(), [&](const Law& law) { return law.name == name; });
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(flag + " needs a value");
    const std::string value = argv[i + 1];
    if (flag == "--questions") {
      options.questions = std::stoll(value);
    } else if (flag == "--seconds") {
      options.seconds = std::stod(value);
    } else if (flag == "--seed") {
      options.seed = std::stoull(value);
    } else if (flag == "--first") {
      options.first = std::stoi(value);
    } else if (flag == "--only" && is_law(value)) {
      options.only = value;
    } else if (flag == "--folder") {
      options.folder = value;
    } else {
      throw std::invalid_argument(flag + " " + value + ": not known");
    }
  }
  return options;
}

int run_trial(int argc, char** argv) {
  Options options;
  try {
    options = read_options(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "trial: {}\n", error.what());
    return 2;
  }
  const bool own = options.folder.empty();
  if (own) {
    options.folder =
        (std::filesystem::temp_directory_path() / fmt::format("stageline-trial-{}", ::getpid()))
            .string();
  }
  std::filesystem::create_directories(options.folder);
  const int code = Trial(options).run();
  if (own && code == 0) std::filesystem::remove_all(options.folder);
  return code;
}

}  // namespace
}  // namespace stageline::trial

int main(int argc, char** argv) { return stageline::trial::run_trial(argc, argv); }
