// Puts the questions of the trial, and holds every answer to what all of them must be.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tests/trial/question.hpp"

namespace stageline::trial {

using Json = nlohmann::json;

/// What two answers, or an answer and the rules for all, disagree in. Thrown.
struct Contradiction {
  std::string what;
};

/// How many questions were put, of all and of those that got an answer.
struct Counts {
  std::int64_t asked = 0;
  std::int64_t answered = 0;
};

class Asker {
 public:
  /// Counts in `counts`, which must outlive it.
  explicit Asker(Counts& counts) : counts_(counts) {}

  /// The text of an answer; empty: refused. Throws Contradiction for an exit code other than 0, 1
  /// and 2, for a refusal that is not one sentence, and for what no answer holds.
  std::optional<std::string> text(const Words& words, bool differences = false);
  /// The same as JSON. Throws Contradiction also for a number that cannot be.
  std::optional<Json> json(const Words& words);
  /// simulate --json, without a search for changes that fit.
  std::optional<Json> simulate(const Question& question);
  /// A question to the library: counted, not checked.
  void count(bool answered);

 private:
  Counts& counts_;
};

/// The words of a command, its flags and the question.
Words command(const std::string& name, const Words& flags, const Question& question);

/// The question as a request in JSON: {"trace": …, "tp": 2}.
std::string request_of(const Question& question);

/// The picoseconds of a row's step.
std::int64_t step_of(const Json& row);

}  // namespace stageline::trial
