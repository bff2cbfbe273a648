// Sentences about plans.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/planner/planner.hpp"
#include "tools/study/figures/ranking.hpp"

namespace stageline::planner {

/// The schedule as the user would write it; plain 1F1B of one pipeline rank is "no pipeline".
std::string schedule_words(const Candidate& candidate);

/// "1f1b, tp 8 × pp 8, 64 micro-batches of 1"
std::string named(const PlanPoint& point);

/// Which member of the front to take, and why; empty where there is none.
struct Recommendation {
  std::optional<std::size_t> index;
  std::string sentence;
};
/// `tie`: into the front; the point that is taken, instead of the least memory `within`.
Recommendation recommend(const std::vector<PlanPoint>& front, Objective objective, double within,
                         const std::optional<Tie>& tie = {});

}  // namespace stageline::planner
