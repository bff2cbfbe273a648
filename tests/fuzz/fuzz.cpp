// The one fuzz program: --target=NAME, and libFuzzer's own flags; --list prints the targets.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/deadlock.hpp"
#include "sim/text/visible.hpp"
#include "tests/fuzz/counters.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/target.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace stageline::fuzz {

void broken(const std::string& message) {
  std::fprintf(stderr, "broken: %s\n", visible_lines(message).c_str());
  std::abort();
}

namespace {

constexpr Target deep[] = {
    {"program_text", Form::text, text_and_back},
    {"program_run", Form::text, run_program_text},
    {"random_program", Form::bytes, random_program},
    {"schedules", Form::text, schedules},
    {"program_write", Form::text, write_program_text},
    {"study", Form::json, study_of_trace},
};

std::vector<Target> all_targets() {
  std::vector<Target> all(readers().begin(), readers().end());
  all.insert(all.end(), std::begin(deep), std::end(deep));
  return all;
}

Target chosen;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// An error of the project's own: one line, in our words, that ends somewhere.
void check_message(const std::string& message, const std::string& input) {
  constexpr std::size_t longest = 20'000;  // names of the input are quoted whole
  hold(!message.empty(), "an error without a message");
  hold(message.size() <= longest, "an error of more than 20 kB");
  for (const char* const foreign : {"json.exception", "basic_string", "vector::", "std::", "stoi",
                                    "[json.", "bad_alloc", "regex_error", "syntax error while"}) {
    if (message.find(foreign) == std::string::npos) continue;
    // Our words may put a colon behind a name of the input.
    std::string_view own = foreign;
    if (own.ends_with(':')) own.remove_suffix(1);
    if (input.find(own) == std::string::npos) broken("a library's words: " + message);
  }
  const std::string shown = visible(message);
  hold(visible(shown) == shown, "an error that is not visible");
}

}  // namespace

void call(const std::string& input) {
  try {
    chosen.call(input);
  } catch (const TraceError& error) {
    check_message(error.what(), input);
  } catch (const ProgramError& error) {
    check_message(error.what(), input);
  } catch (const Deadlock& error) {
    check_message(error.what(), input);
  } catch (const UsageError& error) {
    check_message(error.what(), input);
  }
}

}  // namespace stageline::fuzz

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  using namespace stageline::fuzz;
  constexpr const char* flag = "--target=";
  std::string name;
  bool merges = false;
  for (int i = 1; i < *count; ++i) {
    const char* const word = (*words)[i];
    if (std::strncmp(word, flag, std::strlen(flag)) == 0) name = word + std::strlen(flag);
    merges = merges || std::strncmp(word, "-merge", std::strlen("-merge")) == 0;
    if (std::strcmp(word, "--list") != 0) continue;
    for (const Target& target : all_targets()) std::puts(std::string(target.name).c_str());
    std::exit(0);
  }
  for (const Target& target : all_targets()) {
    if (target.name == name) chosen = target;
  }
  if (chosen.call == nullptr) {
    std::fprintf(stderr, "--target=%s: no such target; --list has all\n", name.c_str());
    std::exit(2);
  }
  merges ? watch_all_counters() : guard_counters();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stageline::fuzz::call(std::string(reinterpret_cast<const char*>(data), size));
  stageline::fuzz::watch_written_counters();
  return 0;
}

// Half of the mutations are the form's own.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  using namespace stageline::fuzz;
  if (chosen.form == Form::bytes || seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string mutated =
      chosen.form == Form::json ? mutate_json(text, seed) : mutate_text(text, seed);
  if (mutated.empty() || mutated.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(mutated.begin(), mutated.end(), data);
  return mutated.size();
}
