// Pipelined training with stale weights first, then training on one device.
#pragma once

#include <optional>

#include "tools/answers/question.hpp"
#include "tools/study/hybrid.hpp"

namespace stageline::answers {

struct HybridQuestion : SettingQuestion {
  PipelinedShare share{};
  int points = 20;  // of the curve
};

struct HybridAnswer {
  Setting setting;
  Case asked;
  std::optional<HybridStudy> found{};  // empty: no order of rounds repeats exactly
};

/// Throws what opened_case() and hybrid_study() throw.
HybridAnswer answer(const HybridQuestion& question);

}  // namespace stageline::answers
