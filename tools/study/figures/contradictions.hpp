// Invariants of every outcome: one that breaks any of them is a defect of Stageline, whatever was
// asked, and is not shown.
//
//      0 ≤ busy ≤ makespan      busy + idle = makespan; the causes of idle time add up to it
//      step ≥ busiest lane      no pace beats the work of one lane in a step
//      0 ≤ bubble ≤ 1           and so does the share of exposed communication
//      speed-up ≤ Σ rates       in units of the fastest device
//      peak ≥ weights           and the peak is the sum of its kinds, none of which is negative
//      staleness ≥ 0            0 where updates are flushed
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// An answer that contradicts itself. what() names the schedule and the broken rule with numbers.
struct ContradictionError : std::logic_error {
  explicit ContradictionError(const std::string& message)
      : std::logic_error(without_nul(message)) {}
};

/// One sentence for each rule that the answer to `asked` breaks; empty for a sound one. O(spans).
std::vector<std::string> contradictions(const Case& asked, const Outcome& outcome);

/// Throws ContradictionError with the first of them.
void check_answer(const Case& asked, const Outcome& outcome);

}  // namespace stageline
