// What must hold between the answers to questions that belong together.
#pragma once

#include <span>

#include "tests/trial/asker.hpp"

namespace stageline::trial {

struct Law {
  const char* name;  // as --only takes it
  const char* says;  // in one line
  int weight;        // how often it is drawn
  Kind of;           // the questions that it applies to
  /// Returns whether the law applies to the question, and throws Contradiction where it is broken.
  /// Further numbers come from `draw`.
  bool (*hold)(Asker& asker, const Question& question, test::Questions& draw);
};

/// The same question put in two ways.
std::span<const Law> agreements();
/// A question and a changed one.
std::span<const Law> changes();

}  // namespace stageline::trial
