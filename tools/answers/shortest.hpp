// The shortest order of a step under a limit of memory.
#pragma once

#include <functional>

#include "tools/answers/question.hpp"
#include "tools/study/optimal.hpp"

namespace stageline::answers {

/// Its one schedule is zb_auto, whose knobs say the limit and the goal.
struct OptimalQuestion : SettingQuestion {
  Time most{};  // that the search takes
};

struct OptimalAnswer {
  Setting setting;
  Optimal found;
};

/// How a face watches over the search: what is known, and what is left of its time.
struct SearchWatch {
  const std::atomic<bool>* stop = nullptr;  // ends it with the best so far
  std::function<void(const BranchKnown&, Time)> progress{};
};

/// Throws what opened_case() and optimal() throw.
OptimalAnswer answer(const OptimalQuestion& question, const SearchWatch& watch = {});

}  // namespace stageline::answers
