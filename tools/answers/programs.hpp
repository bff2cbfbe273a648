// The program of a schedule on one case.
#pragma once

#include <cstdint>
#include <optional>

#include "tools/answers/question.hpp"
#include "tools/study/outcome.hpp"

namespace stageline::answers {

/// How much of the case is worked out for its program.
enum class ProgramOf : std::uint8_t {
  run,              // simulated, with all passes applied
  checked_compute,  // the ops of computation, checked up to whether they can finish
  compute,          // those as the schedule writes them
};

/// The program has one step, unless the setting says how many.
struct ProgramQuestion : SettingQuestion {
  ProgramOf of = ProgramOf::run;
};

struct ProgramAnswer {
  Setting setting;
  Case asked;
  Program program;
  std::optional<Outcome> outcome{};  // of a run
};

/// Throws what opened_case() throws, and what making the program throws.
ProgramAnswer answer(const ProgramQuestion& question);

/// The costs of the stages of a program on the question's case.
Costs costs_of_program(const SettingQuestion& question);

}  // namespace stageline::answers
