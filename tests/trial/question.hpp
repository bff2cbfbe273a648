// One question of the trial: a model with its options, and settings, each of which can be left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/questions/random_question.hpp"

namespace stageline::trial {

using Words = std::vector<std::string>;

/// "--tp" with "2"; a flag without a value has none.
struct Setting {
  std::string flag;
  std::string value;
};

/// Ranks of a language model on machines, a pipeline of equal layers, or either.
enum class Kind { any, ranks, pipeline };

struct Question {
  std::string model;  // "model:transformer@h100", "uniform"
  Words options;      // of the model: "layers=4"
  std::vector<Setting> settings;

  /// "model:transformer@h100,layers=4".
  std::string trace() const;
  /// Trace and settings, as one types them behind a command.
  Words words() const;
  bool has(const std::string& flag) const;
  /// "" where the flag is not given.
  std::string value(const std::string& flag) const;
  Question without(const std::string& flag) const;
  /// In place of the value that was given, or in addition.
  Question with(const std::string& flag, const std::string& value) const;
  /// Whether a degree is given, so that there are ranks.
  bool has_degrees() const;
  /// Whether an op's order depends on links or memory: a search, or a limit in bytes.
  bool searches() const;
};

/// The source of random numbers of question `number` of a seed: the same on every machine.
test::Questions draw_of(std::uint64_t seed, int number, const std::string& folder);

/// Draws a question. Clusters that are files are written into the folder of `draw`.
Question draw_question(test::Questions& draw, Kind of);

}  // namespace stageline::trial
