// What the step of one schedule hangs on.
#pragma once

#include "tools/answers/question.hpp"
#include "tools/study/outcome.hpp"
#include "tools/study/whatif/sensitivity.hpp"

namespace stageline::answers {

struct SensitivityQuestion : SettingQuestion {
  int threads = 0;  // 0: all cores
};

struct SensitivityAnswer {
  Setting setting;
  Case asked;
  Outcome outcome;
  Sensitivity found{};
};

/// Throws NothingKnown where `watch.stop` came before the first lever, and what opened_case() and
/// study() throw.
SensitivityAnswer answer(const SensitivityQuestion& question, const Watch& watch = {});

}  // namespace stageline::answers
