// The likeliest causes of what is not explained.
#pragma once

#include <vector>

#include "tools/answers/explained.hpp"

namespace stageline::answers {

/// The likeliest ailments first, at most three, each at the strength that comes nearest to the
/// measured step. `found`: the question's answer but for them.
std::vector<Suspect> suspects_of(const ExplainQuestion& question, const Explanation& found);

}  // namespace stageline::answers
