// The exact pace of one schedule, the cycle that limits it, and lower bounds.
#pragma once

#include <optional>

#include "tools/answers/question.hpp"
#include "tools/study/pace/bound.hpp"

namespace stageline {

struct BoundQuestion : SettingQuestion {};

struct BoundAnswer {
  Setting setting;
  Case asked;
  std::optional<Bound> bound{};  // empty: no order of rounds repeats exactly
};

/// Throws what opened_case() and bound_of() throw.
BoundAnswer answer(const BoundQuestion& question);

}  // namespace stageline
