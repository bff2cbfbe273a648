// A row's question as its reader can ask it again: as a request, and as a command.
#pragma once

#include <string>
#include <vector>

#include "tools/published/points.hpp"

namespace stageline {

/// A setting by the key of a request, and its value as text.
struct QuestionWord {
  std::string key;
  std::string text;
};

/// All settings of the question that are not their defaults, by the keys of a request. A cluster
/// and a calibration that are no file are there as their text.
std::vector<QuestionWord> words_of(const Question& question);

/// "stageline compare model:… --cluster a100x8 …": its step time is that of predicted(), each word
/// is one of a POSIX shell.
std::string command_of(const Question& question);

}  // namespace stageline
