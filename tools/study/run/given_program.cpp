#include "tools/study/run/given_program.hpp"

#include <fmt/core.h>

#include <string>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

// "mine (runs/mine.slp)", or its name alone where that says the file.
std::string with_path(const ScheduleSpec& spec) {
  const std::string& path = spec.given->path;
  const std::string name = title(spec);
  return path.empty() || name.find(path) != std::string::npos ? name
                                                              : fmt::format("{} ({})", name, path);
}

std::string plural_of(int number, const std::string& what) {
  const std::size_t end = what.find(' ');
  const std::string noun = what.substr(0, end);
  const char* const plural = number == 1 ? "" : noun.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}{}", number, noun, plural,
                     end == std::string::npos ? "" : what.substr(end));
}

void check_count(const Case& asked, int says, int here, const char* what, const char* flags) {
  if (says == here) return;
  throw UsageError(fmt::format(
      "{} is a program of {}, and {} {} asked for; leave out {}, or change the program",
      with_path(asked.spec), plural_of(says, what), here, here == 1 ? "is" : "are", flags));
}

}  // namespace

void check_given(const Case& asked) {
  if (!asked.spec.given) return;
  const Program& program = *asked.program;
  check_count(asked, static_cast<int>(program.devices.size()),
              static_cast<int>(asked.cluster.devices.size()), "device", "--devices or --pp");
  check_count(asked, program.microbatches / program.settings.sequence_chunks, asked.microbatches,
              "micro-batch a step", "--microbatches");
  if (asked.steps > 0 && asked.steps != program.steps) {
    check_count(asked, program.steps, asked.steps, "step", "--steps");
  }
  if (asked.weights && *asked.weights != program.settings.weights) {
    throw UsageError(fmt::format(
        "{} is a program with weights: {}, and --weights is {}; leave out --weights, or change the "
        "program",
        with_path(asked.spec), name(program.settings.weights), name(*asked.weights)));
  }
}

}  // namespace stageline
