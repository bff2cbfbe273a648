// The exact pace of one schedule, the cycle that limits it, and lower bounds.
#pragma once

#include <optional>
#include <string>

#include "tools/answers/question.hpp"
#include "tools/study/pace/bound.hpp"

namespace stageline::answers {

struct BoundQuestion : SettingQuestion {};

struct BoundAnswer {
  Setting setting;
  Case asked;
  std::optional<Bound> bound{};  // empty: no order of rounds repeats exactly
};

/// Throws UsageError where several data-parallel pipelines are simulated: `what` is of one that
/// stands for all. "a bound", "an order".
void check_one_pipeline(const Case& asked, const std::string& what);

/// With degrees and no way named to share links, messages take turns, and a note says so. Throws
/// what opened_case(), check_one_pipeline() and bound_of() throw.
BoundAnswer answer(const BoundQuestion& question);

}  // namespace stageline::answers
