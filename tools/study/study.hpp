// One schedule on one problem, from a question to an answer: every command and binding goes through
// study().
#pragma once

#include <string>
#include <vector>

#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// Places, cuts, prices, schedules, completes, validates, compiles, runs and measures. Throws what
/// those throw, and ContradictionError (tools/study/contradictions.hpp) rather than return an
/// answer that cannot be. `curves`: with memory over time.
Outcome study(const Case& asked, Curves curves = Curves::none);

/// Throws UsageError where the staleness of a stage breaks what the rule promises: none under
/// flush, one update under double_buffer. `schedule` is for the message.
void check_staleness(const std::string& schedule, WeightRule rule,
                     const std::vector<StageVersions>& versions);

}  // namespace stageline
