// One schedule on one problem, from case to outcome: every command and binding calls study().
#pragma once

#include <string>
#include <vector>

#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// Places, cuts, prices, schedules, completes, validates, compiles, simulates and measures. Throws
/// what those throw, and ContradictionError (tools/study/figures/contradictions.hpp) rather than
/// return an inconsistent answer. `curves`: whether the outcome holds memory over time.
Outcome study(const Case& asked, Curves curves = Curves::none);

/// Throws UsageError where the staleness of a stage exceeds what the rule allows: none under flush,
/// one update under double_buffer. `schedule` names the schedule in the message.
void check_staleness(const std::string& schedule, WeightRule rule,
                     const std::vector<StageVersions>& versions);

}  // namespace stageline
