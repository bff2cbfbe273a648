// Schedules to draw: their outcomes with memory over time.
#pragma once

#include <vector>

#include "tools/answers/question.hpp"
#include "tools/study/outcome.hpp"

namespace stageline::answers {

/// Takes default_schedule() where none is named.
struct DrawingQuestion : SettingQuestion {};

/// In the order of the question.
struct DrawingAnswer {
  Setting setting;
  std::vector<Case> asked{};
  std::vector<Outcome> outcomes{};
};

/// Throws what opened_setting(), searched_case() and study() throw.
DrawingAnswer answer(const DrawingQuestion& question);

}  // namespace stageline::answers
